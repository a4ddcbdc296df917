// The endpoints of the admin interface: a further one is a file here and a line below.

import type { AdminHandler } from '../admin-handler.js';
import { ASSETS } from '../html/assets.js';
import { allocProfiler } from './allocprofiler.js';
import { certs } from './certs.js';
import { clusters } from './clusters.js';
import { configDump } from './config-dump.js';
import { configReload } from './config-reload.js';
import { contention } from './contention.js';
import { cpuProfiler } from './cpuprofiler.js';
import { drainListeners } from './drain-listeners.js';
import { drainStatus } from './drain-status.js';
import { healthcheckFail } from './healthcheck-fail.js';
import { healthcheckOk } from './healthcheck-ok.js';
import { heapDump, peakHeapDump } from './heap-dump.js';
import { heapProfiler } from './heapprofiler.js';
import { help } from './help.js';
import { home } from './home.js';
import { hotRestartVersion } from './hot-restart-version.js';
import { initDump } from './init-dump.js';
import { listeners } from './listeners.js';
import { logging } from './logging.js';
import { memory } from './memory.js';
import { memoryAllocator } from './memory-allocator.js';
import { monitoring } from './monitoring.js';
import { quit } from './quitquitquit.js';
import { ready } from './ready.js';
import { recentLookups, recentLookupsClear, recentLookupsDisable, recentLookupsEnable } from './recent-lookups.js';
import { reopenLogs } from './reopen-logs.js';
import { resetCounters } from './reset-counters.js';
import { runtime } from './runtime.js';
import { runtimeModify } from './runtime-modify.js';
import { serverInfo } from './server-info.js';
import { stats } from './stats.js';

export const HANDLERS: readonly AdminHandler[] = [
  allocProfiler,
  certs,
  clusters,
  healthcheckFail,
  healthcheckOk,
  configDump,
  configReload,
  contention,
  cpuProfiler,
  drainListeners,
  drainStatus,
  heapDump,
  peakHeapDump,
  heapProfiler,
  help,
  home,
  hotRestartVersion,
  initDump,
  listeners,
  logging,
  memory,
  memoryAllocator,
  monitoring,
  quit,
  ready,
  recentLookups,
  recentLookupsClear,
  recentLookupsDisable,
  recentLookupsEnable,
  reopenLogs,
  resetCounters,
  runtime,
  runtimeModify,
  serverInfo,
  stats,
  ...ASSETS,
];
