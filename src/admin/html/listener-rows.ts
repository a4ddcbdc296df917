// The listeners for the home page's script: the content of /listeners, and the prefix of each listener's stats, for which
// envoy.admin.v3.Listeners has no field.

import { addressText } from '../../io/addresses/address.js';
import type { AdminHandler } from '../admin-handler.js';
import { JSON_TYPE } from '../json.js';

export interface ListenerRow {
  readonly name: string;
  readonly addresses: readonly string[];
  /** `listener.127.0.0.1_80.` */
  readonly statPrefix: string;
}

/** An unlisted endpoint. */
export const listenerRows: AdminHandler = {
  path: '/web/listeners.json',
  isUnlisted: true,
  mutates: false,
  help: '',
  parameters: [],
  handle(_request, services) {
    const rows = Array.from(services.listeners(), ({ name, addresses, statPrefix }): ListenerRow => {
      return { name, addresses: addresses.map(addressText), statPrefix };
    });
    return { contentType: JSON_TYPE, body: JSON.stringify(rows) };
  },
};
