// GET /init_dump: what the server is still waiting for (envoy.admin.v3.UnreadyTargetsDumps).

import type { AdminHandler } from '../../admin-handler.js';
import type { UnreadyView } from '../../admin-services.js';
import { JSON_TYPE, prettyJson } from '../../json.js';

export const initDump: AdminHandler = {
  path: '/init_dump',
  mutates: false,
  help: 'dump current init manager information (experimental)',
  parameters: [
    {
      name: 'mask',
      help: 'Component whose unready targets are wanted: listener',
    },
  ],
  handle({ query }, services) {
    // Listeners are the only component that a mask can name; other masks choose nothing.
    const mask = query.get('mask')?.split(',');
    const isWanted = ({ isListener }: UnreadyView) => mask === undefined || (isListener && mask.includes('listener'));
    const dumps = [...services.unreadyTargets()].filter(isWanted);
    const body = dumps.map(({ name, targets }) => ({
      name: `init manager ${name}`,
      target_names: targets.map((target) => `target ${target}`),
    }));
    return {
      contentType: JSON_TYPE,
      body: `${prettyJson(body.length === 0 ? {} : { unready_targets_dumps: body })}\n`,
    };
  },
};
