// POST /logging: lists loggers with their levels, and changes levels on all threads.

import { messageOf } from '../../../common/errors/errors.js';
import { LEVEL_NAMES } from '../../../log/levels.js';
import { isFineGrain, levelRules, loggerFiles, loggerStates } from '../../../log/logger.js';
import { type AdminHandler, Refusal } from '../../admin-handler.js';
import type { AdminServices } from '../../admin-services.js';
import type { QueryParameters } from '../../http/messages/query-parameters.js';
import { updatedRules } from '../../logging-update.js';

export const logging: AdminHandler = {
  path: '/logging',
  mutates: true,
  help: 'query/change logging levels',
  parameters: [
    {
      name: 'paths',
      help: 'Change several loggers: <name>:<level>,… With fine-grain logging names are files or globs such as src/http/*',
    },
    { name: 'level', help: 'Change all loggers', choices: ['', ...LEVEL_NAMES] },
    { name: 'group', help: 'Change the loggers of a group such as http: <group>:<level>' },
  ],
  handle({ query }, services) {
    try {
      update(query, services);
    } catch (error) {
      throw new Refusal(400, `error: ${messageOf(error)}\n\n${USAGE}${loggerList()}`);
    }
    return { body: loggerList() };
  },
};

const USAGE =
  'usage: /logging?<name>=<level> (change single level)\n' +
  'usage: /logging?paths=name1:level1,name2:level2,... (change multiple levels)\n' +
  'usage: /logging?level=<level> (change all levels)\n' +
  'usage: /logging?group=<group_name>:<level> (change group of loggers)\n' +
  `levels: ${LEVEL_NAMES.join(' ')} \n`;

function update(query: QueryParameters, services: AdminServices): void {
  const known = { isFineGrain: isFineGrain(), files: loggerFiles() };
  const rules = updatedRules(query.entries(), levelRules(), known);
  if (rules !== undefined) services.setLevelRules(rules);
}

function loggerList(): string {
  const lines = loggerStates().map(({ name, level }) => `  ${name}: ${level}\n`);
  return `active loggers:\n${lines.join('')}\n`;
}
