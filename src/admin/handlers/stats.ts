// GET /stats: everything that is counted, in several formats.

import type { StatsReader } from '../../stats/reader.js';
import { renderJson } from '../../stats/render-json.js';
import { renderText } from '../../stats/render-text.js';
import { type AdminHandler, type AdminResponse, Refusal } from '../admin-handler.js';
import { JSON_TYPE } from '../json.js';
import { FILTER, SELECTION_PARAMETERS, type StatsParameters, statsParameters, USED_ONLY } from '../stats-parameters.js';

/** The formats by the name that asks for them; without one it is text. */
const FORMATS: { readonly [format: string]: (reader: StatsReader, parameters: StatsParameters) => AdminResponse } = {
  text: (reader, parameters) => ({ body: renderText(reader, parameters) }),
  json: (reader, parameters) => ({ contentType: JSON_TYPE, body: renderJson(reader, parameters) }),
};

export const stats: AdminHandler = {
  path: '/stats',
  mutates: false,
  help: 'print server stats',
  parameters: [
    USED_ONLY,
    FILTER,
    { name: 'format', help: 'Format to use', choices: Object.keys(FORMATS) },
    ...SELECTION_PARAMETERS,
  ],
  handle({ query }, services) {
    const parameters = statsParameters(query);
    const format = query.get('format') ?? 'text';
    if (!Object.hasOwn(FORMATS, format)) {
      throw new Refusal(400, `usage: /stats?format=(${Object.keys(FORMATS).join('|')})\n\n`);
    }
    if (services.flushesStatsOnAdmin) services.flushStats();
    return FORMATS[format]!(services.stats.reader(), parameters);
  },
};
