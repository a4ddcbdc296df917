// GET /runtime: the runtime layers, and the value of each key in each layer (FACTS §2.13).

import { inTurns } from '../../../common/time/next-turn.js';
import type { Layer } from '../../../runtime/layer.js';
import type { AdminHandler } from '../../admin-handler.js';
import { nextPieceTurn } from '../../http/turns.js';
import { JSON_TYPE, prettyJson } from '../../json.js';
import { textPieces } from '../../stats/text-pieces.js';

export const runtime: AdminHandler = {
  path: '/runtime',
  mutates: false,
  help: 'print runtime values',
  parameters: [],
  async handle(_request, services) {
    const keys = await inTurns(services.runtimeKeys(), nextPieceTurn);
    return { contentType: JSON_TYPE, body: textPieces(runtimeJson(services.runtimeLayers(), keys)) };
  },
};

function* runtimeJson(layers: readonly Layer[], keys: readonly string[]): Generator<string, void> {
  const names = layers.map((layer) => layer.name);
  yield `{\n "layers": ${prettyJson(names, 1)},\n "entries": {`;
  for (const [index, key] of keys.entries()) {
    const layerValues = layers.map((layer) => layer.values.get(key)?.text ?? '');
    const entry = { final_value: layerValues.findLast((text) => text !== '') ?? '', layer_values: layerValues };
    yield `${index === 0 ? '' : ','}\n  ${JSON.stringify(key)}: ${prettyJson(entry, 2)}`;
  }
  yield keys.length === 0 ? '}\n}\n' : '\n }\n}\n';
}
