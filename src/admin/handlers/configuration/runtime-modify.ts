// POST /runtime_modify: sets values of the admin layer of runtime, or takes them back (FACTS §2.13).

import { type AdminHandler, OK, Refusal } from '../../admin-handler.js';

export const runtimeModify: AdminHandler = {
  path: '/runtime_modify',
  mutates: true,
  help: 'modify runtime values',
  parameters: [],
  handle({ query }, services) {
    const entries = [...query.entries()];
    if (entries.length === 0) throw new Refusal(400, USAGE);
    if (!services.modifyRuntime(entries)) throw new Refusal(503, 'No admin layer specified');
    return OK;
  },
};

const USAGE =
  'usage: /runtime_modify?key1=value1&key2=value2&keyN=valueN\n' +
  '       or send the parameters as form values\n' +
  'use an empty value to remove a previously added override';
