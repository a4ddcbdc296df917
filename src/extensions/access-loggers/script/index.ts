// baton.access_loggers.script: an access logger that a user has written in TypeScript, loaded at run time.

import type { Script } from '../../../config/generated/api.js';
import { ScriptFilterStats } from '../../script/stats.js';
import type { AccessLoggerExtension } from '../../sdk.js';
import { ScriptLogger } from './script-logger.js';

export const scriptAccessLog: AccessLoggerExtension<Script> = {
  category: 'envoy.access_loggers',
  name: 'baton.access_loggers.script',
  typeUrls: ['type.googleapis.com/baton.access_loggers.script.v1.Script'],
  implemented: { 'baton.access_loggers.script.v1.Script': 'all' },
  scopes: ({ module }) => [{ prefix: statsPrefix(module!), layout: ScriptFilterStats }],
  createOnWorker: (config, context) => new ScriptLogger(config, statsPrefix(config.module!), context),
};

function statsPrefix(module: string): string {
  return `access_log.script.${module}.`;
}
