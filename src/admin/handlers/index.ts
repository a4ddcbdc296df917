// The endpoints of the admin interface. To add one, add a file here and a line below.

import type { AdminHandler } from '../admin-handler.js';
import { ASSETS } from '../html/assets.js';
import { configDump } from './configuration/config-dump.js';
import { configReload } from './configuration/config-reload.js';
import { runtime } from './configuration/runtime.js';
import { runtimeModify } from './configuration/runtime-modify.js';
import { help } from './help.js';
import { home } from './home.js';
import { hotRestartVersion } from './process/hot-restart-version.js';
import { initDump } from './process/init-dump.js';
import { logging } from './process/logging.js';
import { quit } from './process/quitquitquit.js';
import { ready } from './process/ready.js';
import { reopenLogs } from './process/reopen-logs.js';
import { serverInfo } from './process/server-info.js';
import { allocProfiler } from './profiling/allocprofiler.js';
import { contention } from './profiling/contention.js';
import { cpuProfiler } from './profiling/cpuprofiler.js';
import { heapDump, peakHeapDump } from './profiling/heap-dump.js';
import { heapProfiler } from './profiling/heapprofiler.js';
import { memory } from './profiling/memory.js';
import { memoryAllocator } from './profiling/memory-allocator.js';
import { monitoring } from './stats/monitoring.js';
import {
  recentLookups,
  recentLookupsClear,
  recentLookupsDisable,
  recentLookupsEnable,
} from './stats/recent-lookups.js';
import { resetCounters } from './stats/reset-counters.js';
import { stats } from './stats/stats.js';
import { certs } from './traffic/certs.js';
import { clusters } from './traffic/clusters.js';
import { drainListeners } from './traffic/drain-listeners.js';
import { drainStatus } from './traffic/drain-status.js';
import { explain } from './traffic/explain.js';
import { healthcheckFail } from './traffic/healthcheck-fail.js';
import { healthcheckOk } from './traffic/healthcheck-ok.js';
import { listeners } from './traffic/listeners.js';

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
  explain,
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
