// GET /init_dump: what the server is still waiting for (envoy.admin.v3.UnreadyTargetsDumps).

import type { AdminHandler } from '../admin-handler.js';
import { JSON_TYPE, prettyJson } from '../json.js';

export const initDump: AdminHandler = {
  path: '/init_dump',
  mutates: false,
  help: 'dump current init manager information (experimental)',
  parameters: [
    {
      name: 'mask',
      help: 'Component whose unready targets are wanted; the one that there is: listener',
    },
  ],
  handle({ query }, services) {
    const mask = query.get('mask');
    // Listeners are the only components whose targets are known; other masks choose nothing.
    const isAsked = mask === undefined || mask.split(',').includes('listener');
    const dumps = isAsked ? [...services.unreadyTargets()] : [];
    const body = dumps.map(({ name, targets }) => ({ name: `init manager ${name}`, target_names: targets }));
    return {
      contentType: JSON_TYPE,
      body: `${prettyJson(body.length === 0 ? {} : { unready_targets_dumps: body })}\n`,
    };
  },
};
