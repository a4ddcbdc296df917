// GET /clusters: clusters with their limits, their hosts, and what was counted of each host.

import type { AdminHandler } from '../../admin-handler.js';
import type { ClusterView } from '../../admin-services.js';
import { clustersJson } from '../../clusters/clusters-json.js';
import { clustersText } from '../../clusters/clusters-text.js';
import { JSON_TYPE } from '../../json.js';
import { nameFilter } from '../../stats/name-filter.js';
import { textPieces } from '../../stats/text-pieces.js';

export const clusters: AdminHandler = {
  path: '/clusters',
  mutates: false,
  help: 'upstream cluster status',
  parameters: [
    { name: 'filter', help: 'Regular expression (Google re2) for filtering clusters by name' },
    { name: 'format', help: 'File format to use', choices: ['text', 'json'] },
  ],
  handle({ query }, services) {
    const wanted = selected(services.clusters(), nameFilter(query, false));
    const { stats } = services;
    // A format that it does not know is text: so have scripts always been answered.
    if (query.get('format') !== 'json')
      return { body: textPieces(clustersText(wanted, services.clustersVersion(), stats)) };
    return { contentType: JSON_TYPE, body: textPieces(clustersJson(wanted, stats)) };
  },
};

/** Undefined in the place of those that are passed over. */
function* selected(views: Iterable<ClusterView>, isWanted: ((name: string) => boolean) | undefined) {
  for (const view of views) yield isWanted === undefined || isWanted(view.spec.name) ? view : undefined;
}
