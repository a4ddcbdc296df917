// POST /runtime_modify: sets or removes values of the admin layer of runtime (FACTS §2.13).

import { BatonError } from '../../../common/errors/errors.js';
import { inTurns } from '../../../common/time/next-turn.js';
import { readAdminEntries } from '../../../runtime/admin-layer.js';
import { type AdminHandler, OK, Refusal } from '../../admin-handler.js';
import { nextPieceTurn } from '../../http/turns.js';

export const runtimeModify: AdminHandler = {
  path: '/runtime_modify',
  mutates: true,
  help: 'modify runtime values',
  parameters: [],
  async handle({ query }, services) {
    if (query.isEmpty) throw new Refusal(400, USAGE);
    const entries = await inTurns(readAdminEntries(query.entries()), nextPieceTurn);
    try {
      if (!(await services.modifyRuntime(entries))) throw new Refusal(503, 'No admin layer specified');
    } catch (error) {
      if (error instanceof BatonError && error.code === 'RUNTIME_LAYER')
        throw new Refusal(400, `${error.describe()}\n`);
      throw error;
    }
    return OK;
  },
};

const USAGE =
  'usage: /runtime_modify?key1=value1&key2=value2&keyN=valueN\n' +
  '       or send the parameters as form values\n' +
  'use an empty value to remove a previously added override';
