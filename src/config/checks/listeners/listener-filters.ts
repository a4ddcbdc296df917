// Listener filters, and what a UDP listener cannot have.

import { isUdp } from '../../fields/udp.js';
import type { Listener } from '../../generated/api.js';
import type { Path } from '../../text/path.js';
import type { CheckContext } from '../check-context.js';

const STREAM_CATEGORY = 'envoy.filters.listener';
const DATAGRAM_CATEGORY = 'envoy.filters.udp_listener';

export function checkListenerFilters(listener: Listener, path: Path, { catalog, problems }: CheckContext): void {
  const isDatagram = isUdp(listener);
  const category = isDatagram ? DATAGRAM_CATEGORY : STREAM_CATEGORY;
  listener.listener_filters?.forEach((filter, index) => {
    const url = filter?.typed_config?.['@type'];
    const found = url === undefined ? undefined : catalog.byTypeUrl(url, category);
    if (found === undefined || found.category === category) return;
    const text = `'${found.name}' is not a filter of ${isDatagram ? 'UDP' : 'TCP'} listeners`;
    const refusal = `Didn't find a registered implementation for '${filter.name}' with type URL: '${url}': ${text}`;
    problems.error([...path, 'listener_filters', index, 'typed_config', '@type'], refusal);
  });
  if (!isDatagram) {
    if (listener.udp_listener_config === undefined) return;
    return problems.error([...path, 'udp_listener_config'], 'the protocol of the address is not UDP', 'key');
  }
  const chains = listener.filter_chains?.length ?? 0;
  // In Envoy's words.
  if (chains > 0) {
    const text = `${chains} filter chain(s) specified for connection-less UDP listener.`;
    problems.error([...path, 'filter_chains'], text, 'key');
  }
  if (listener.default_filter_chain !== undefined) {
    const text = 'a UDP listener has no filter chains: leave it out';
    problems.error([...path, 'default_filter_chain'], text, 'key');
  }
}
