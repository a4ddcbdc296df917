// Stats of health discovery.

import { defineLayout } from '../layout.js';

/** Scope `hds_delegate.`. As in Envoy, `requests` are the messages of the service, and `responses` those of this server. */
export const HdsDelegateStats = defineLayout({
  errors: 'counter',
  requests: 'counter',
  responses: 'counter',
  updates: 'counter',
});
