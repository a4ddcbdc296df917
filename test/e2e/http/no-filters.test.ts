// A connection manager without HTTP filters serves: every request is answered with 500. %LOCAL_REPLY_BODY% is empty in its access log.

import { join } from 'node:path';
import t from 'tap';
import { fileAccessLog, logLines, rawExchange, tempDir, waitFor } from '../harness/index.js';
import { answering, managerOf, startProxy } from './proxy.js';

t.test('an empty filter chain answers every request with 500', async (t) => {
  const log = join(tempDir(t), 'log');
  const format = '%REQ_WITHOUT_QUERY(:PATH)% %RESPONSE_CODE% %RESPONSE_CODE_DETAILS% [%LOCAL_REPLY_BODY%]\n';
  const { ports } = await startProxy(t, {
    listeners: {
      main: managerOf([answering({ path: '/' }, 'direct')], {
        http_filters: [],
        access_log: [fileAccessLog(log, format)],
      }),
    },
    args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
  });
  const { text } = await rawExchange(
    ports.main,
    'GET /?a=b HTTP/1.1\r\nHost: a\r\n\r\nPOST /c HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody',
  );
  t.equal(text.match(/HTTP\/1\.1 500 /g)?.length, 2, text);
  await waitFor(() => logLines(log).length === 2, { what: 'two log lines' });
  t.same(logLines(log), ['/ 500 no_http_filters []', '/c 500 no_http_filters []']);
});
