// Loaded into Baton before its own code (--import): an access logger that sends batches of lines to a cluster by TCP. It is
// configured by the message of the fluentd logger.

import type { FluentdAccessLogConfig } from '../../../../src/config/generated/api.js';
import { EXTENSIONS } from '../../../../src/extensions/index.js';
import {
  type AccessLogger,
  type AccessLoggerExtension,
  ClusterStream,
  compileFormat,
  durationMs,
  getLogger,
  Timer,
} from '../../../../src/extensions/sdk.js';
import { partialTable } from '../../../config/partial-table.js';

const TYPE = 'envoy.extensions.access_loggers.fluentd.v3.FluentdAccessLogConfig';
const logger = getLogger('testing');

const batching: AccessLoggerExtension<FluentdAccessLogConfig> = {
  category: 'envoy.access_loggers',
  name: 'envoy.access_loggers.fluentd',
  typeUrls: [`type.googleapis.com/${TYPE}`],
  implemented: partialTable({
    [TYPE]: { cluster: true, tag: true, stat_prefix: true, buffer_flush_interval: true, record: true },
  }),
  clusters: ({ cluster }) => [['cluster', cluster]],
  createOnWorker(config, { calls, timers }): AccessLogger {
    if (config.tag === 'async') return Promise.resolve() as unknown as AccessLogger;
    const format = compileFormat('%REQ(:PATH)% %RESPONSE_CODE%');
    const intervalMs = durationMs(config.buffer_flush_interval, 1000);
    const stream = new ClusterStream(calls, config.cluster!, {
      onSent() {},
      onLost: (reason) => logger.warning(`lines are lost: ${reason}`),
    });
    let lines = '';
    const flush = () => {
      if (lines !== '') stream.write(Buffer.from(`[${lines}]`, 'latin1'));
      lines = '';
    };
    const timer = new Timer(undefined, flush);
    return {
      needs: format.needs,
      log(info) {
        lines += `${format.text(info)};`;
        if (!timer.isScheduled) timers.reschedule(timer, intervalMs);
      },
      close() {
        if (config.tag === 'faulty') throw new Error('a mistake in close()');
        timers.cancel(timer);
        flush();
        void stream.close();
      },
    };
  },
};

(EXTENSIONS as AccessLoggerExtension[]).push(batching as AccessLoggerExtension);
