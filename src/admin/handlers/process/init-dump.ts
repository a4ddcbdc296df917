// GET /init_dump: the init targets that are not ready (envoy.admin.v3.UnreadyTargetsDumps).

import type { AdminHandler } from '../../admin-handler.js';
import type { UnreadyView } from '../../admin-services.js';
import { type Element, JSON_TYPE, prettyJson, prettyList } from '../../json.js';
import { textPieces } from '../../stats/text-pieces.js';

export const initDump: AdminHandler = {
  path: '/init_dump',
  mutates: false,
  help: 'dump current init manager information (experimental)',
  parameters: [
    {
      name: 'mask',
      help: 'Only unready targets of this component: listener',
    },
  ],
  handle({ query }, services) {
    // Listeners are the only component that a mask can select; other masks select nothing.
    const mask = query.get('mask')?.split(',');
    const isSelected = ({ isListener }: UnreadyView) => mask === undefined || (isListener && mask.includes('listener'));
    return { contentType: JSON_TYPE, body: textPieces(dumpJson(services.unreadyTargets(), isSelected)) };
  },
};

function* dumpJson(views: Iterable<UnreadyView>, isSelected: (view: UnreadyView) => boolean): Generator<string, void> {
  yield* prettyList({}, 'unready_targets_dumps', elements(views, isSelected));
  yield '\n';
}

function* elements(views: Iterable<UnreadyView>, isSelected: (view: UnreadyView) => boolean): Generator<Element, void> {
  for (const view of views) yield isSelected(view) ? [elementJson(view)] : undefined;
}

function elementJson({ name, targets }: UnreadyView): string {
  const target_names = targets.map((target) => `${isShared(target) ? 'shared target' : 'target'} ${target}`);
  return prettyJson({ name: `init manager ${name}`, target_names }, 2);
}

/** As Envoy calls secrets: several listeners and clusters may wait for the same one. */
function isShared(target: string): boolean {
  return target.startsWith('SdsApi ');
}
