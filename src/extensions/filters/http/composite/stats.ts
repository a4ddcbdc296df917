import { defineLayout } from '../../../sdk.js';

export const CompositeStats = defineLayout({
  filter_delegation_success: 'counter',
  // As in Envoy, it exists. What Envoy counts there, filters that cannot be added, is refused with the configuration.
  filter_delegation_error: 'counter',
});
