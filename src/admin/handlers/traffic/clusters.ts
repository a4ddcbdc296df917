// GET /clusters: clusters with their limits and hosts, and the counts of each host.

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
    const chosen = selected(services.clusters(), nameFilter(query, false));
    const { stats } = services;
    // An unknown format means text, for compatibility with scripts.
    if (query.get('format') !== 'json')
      return { body: textPieces(clustersText(chosen, services.clustersVersion(), stats)) };
    return { contentType: JSON_TYPE, body: textPieces(clustersJson(chosen, stats)) };
  },
};

/** Yields undefined in place of skipped clusters. */
function* selected(views: Iterable<ClusterView>, isSelected: ((name: string) => boolean) | undefined) {
  for (const view of views) yield isSelected === undefined || isSelected(view.spec.name) ? view : undefined;
}
