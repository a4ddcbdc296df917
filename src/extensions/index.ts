// All extensions of this build: one line each. Adding one is a folder and a line here.

import { fileAccessLog } from './access-loggers/file/index.js';
import { stderrAccessLog } from './access-loggers/stderr/index.js';
import { stdoutAccessLog } from './access-loggers/stdout/index.js';
import type { AnyExtension } from './factories.js';
import { buffer } from './filters/http/buffer/index.js';
import { headerMutation } from './filters/http/header-mutation/index.js';
import { router } from './filters/http/router/index.js';
import { httpConnectionManager } from './filters/network/http-connection-manager/index.js';
import { tcpProxy } from './filters/network/tcp-proxy/index.js';
import { httpProtocolOptions } from './upstreams/http/index.js';

export const EXTENSIONS: readonly AnyExtension[] = [
  fileAccessLog,
  stderrAccessLog,
  stdoutAccessLog,
  buffer,
  headerMutation,
  router,
  httpConnectionManager,
  tcpProxy,
  httpProtocolOptions,
];
