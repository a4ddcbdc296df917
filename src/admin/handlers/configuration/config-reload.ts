// POST /config/reload: reads the configuration again, shows how it differs from the running one, and applies it if
// requested.

import { type AdminHandler, Refusal } from '../../admin-handler.js';
import { reloadJson } from '../../config-reload/reload-json.js';
import { reloadText } from '../../config-reload/reload-text.js';
import type { ReloadView } from '../../config-reload/reload-view.js';
import type { QueryParameters } from '../../http/messages/query-parameters.js';
import { JSON_TYPE, prettyJson } from '../../json.js';

export const configReload: AdminHandler = {
  path: '/config/reload',
  mutates: true,
  help: 'read the configuration again, show the differences, and apply them',
  parameters: [
    { name: 'apply', help: 'Apply the differences; otherwise they are only shown', choices: ['false', 'true'] },
    {
      name: 'partial',
      help: 'Apply what is possible even if other changes need a restart',
      choices: ['false', 'true'],
    },
    { name: 'format', help: 'File format to use', choices: ['text', 'json'] },
  ],
  async handle({ query }, services) {
    const view = await services.reloadConfiguration({
      applies: flag(query, 'apply'),
      isPartial: flag(query, 'partial'),
    });
    const status = STATUS[view.outcome];
    if (query.get('format') !== 'json') return { status, body: reloadText(view) };
    return { status, contentType: JSON_TYPE, body: `${prettyJson(reloadJson(view))}\n` };
  },
};

const STATUS: Readonly<Record<ReloadView['outcome'], number>> = {
  possible: 200,
  applied: 200,
  invalid: 400,
  'needs-restart': 400,
  busy: 409,
  unread: 503,
  failed: 500,
};

/** Returns a flag. Refuses other values, so that a misspelt one is not taken for false. */
function flag(query: QueryParameters, name: string): boolean {
  const value = query.get(name) ?? 'false';
  if (value !== 'true' && value !== 'false') throw new Refusal(400, `?${name}=<true|false>\n`);
  return value === 'true';
}
