// GET /config_dump: the running configuration (envoy.admin.v3.ConfigDump) without sensitive values.

import { inTurns } from '../../../common/time/next-turn.js';
import { temporarySchema } from '../../../config/schema/schema.js';
import type { AdminHandler } from '../../admin-handler.js';
import { dumpTexts } from '../../config-dump/config-dump-query.js';
import { nextPieceTurn } from '../../http/turns.js';
import { JSON_TYPE } from '../../json.js';
import { textPieces } from '../../stats/text-pieces.js';

export const configDump: AdminHandler = {
  path: '/config_dump',
  mutates: false,
  help: 'dump current configs (experimental)',
  parameters: [
    { name: 'resource', help: 'Only this list of resources, such as static_clusters' },
    {
      name: 'mask',
      help: 'Only these fields of each dump, or of each resource with resource: a FieldMask such as a,b.c',
    },
    { name: 'name_regex', help: 'Only resources whose whole name matches; with resource and mask too' },
    { name: 'include_eds', help: 'The endpoints of clusters as well', isFlag: true },
  ],
  async handle({ query }, services) {
    const dumpQuery = { resource: query.get('resource'), mask: query.get('mask'), nameRegex: query.get('name_regex') };
    // Only these queries need the schema, and keeping it would permanently cost the primary several megabytes.
    const schema = (dumpQuery.resource ?? dumpQuery.mask) ? await temporarySchema() : undefined;
    const dumps = [...services.configDumps(query.has('include_eds'))];
    const texts = await inTurns(dumpTexts(dumps, dumpQuery, schema), nextPieceTurn);
    return { contentType: JSON_TYPE, body: textPieces(texts) };
  },
};
