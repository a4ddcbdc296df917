// --mode validate: reads the files of listeners, clusters, routes, endpoints and secrets that a bootstrap names, as the server would.
// Mistakes in them are warnings: a server starts despite them, and picks up later contents.

import { sourcesIn } from '../../config/checks/services/config-sources.js';
import { fileOfSource } from '../../config/fields/file-of-source.js';
import type { Bootstrap } from '../../config/generated/api.js';
import { loadSchema } from '../../config/schema/schema.js';
import type { Path } from '../../config/text/path.js';
import { formatProblem } from '../../config/text/problem.js';
import { EXTENSIONS } from '../../extensions/index.js';
import { MessageReader } from '../../xds/reading/message-reader.js';
import { type DynamicOptions, readingSettings } from '../../xds/reading/settings.js';
import { RESOURCE_MESSAGES } from '../../xds/resource.js';

/** The message that a file contains, by the last parts of the path of its source. */
const MESSAGES: readonly (readonly [place: Path, message: string])[] = [
  [['dynamic_resources', 'lds_config'], RESOURCE_MESSAGES.listener],
  [['dynamic_resources', 'cds_config'], RESOURCE_MESSAGES.cluster],
  [['rds', 'config_source'], RESOURCE_MESSAGES.route],
  [['eds_cluster_config', 'eds_config'], RESOURCE_MESSAGES.endpoints],
  [['sds_config'], RESOURCE_MESSAGES.secret],
];

/** Returns a line for each mistake. A missing file of listeners is one; where others are missing, the bootstrap is refused. */
export function fileMistakes(bootstrap: Bootstrap, options: DynamicOptions): string[] {
  const reader = new MessageReader(readingSettings(bootstrap, options), EXTENSIONS);
  const read = new Set<string>();
  const mistakes: string[] = [];
  sourcesIn(loadSchema(), 'envoy.config.bootstrap.v3.Bootstrap', bootstrap, (source, at) => {
    const path = fileOfSource(source)?.path;
    const message = MESSAGES.find(([place]) => place.every((part, index) => at.at(index - place.length) === part))?.[1];
    if (path === undefined || message === undefined || read.has(`${message} ${path}`)) return;
    read.add(`${message} ${path}`);
    mistakes.push(...mistakesIn(reader, message, path));
  });
  return mistakes;
}

function mistakesIn(reader: MessageReader, message: string, path: string): string[] {
  const result = reader.answer({ kind: 'file', message, path });
  if (!('items' in result)) {
    const { refusal } = result as { readonly refusal: { readonly fault: string; readonly details: string } };
    return [`no resources are taken from a file: ${refusal.details}`];
  }
  const refused = result.items.flatMap((item) =>
    item.kind === 'refused' ? [`a resource is refused: ${item.details}`] : [],
  );
  return [...refused, ...result.warnings.map(formatProblem)];
}
