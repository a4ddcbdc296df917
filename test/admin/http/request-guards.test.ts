import t from 'tap';
import { allowedHosts, foreignSite } from '../../../src/admin/http/request-guards.js';

const HOST = 'admin.example:9901';

t.test('requests on behalf of other sites are detected from the headers of browsers', async (t) => {
  for (const headers of [
    {},
    { host: HOST },
    { host: HOST, origin: 'http://admin.example:9901' },
    { host: 'ADMIN.example:9901', origin: 'http://admin.example:9901' },
    { host: 'admin.example', origin: 'https://admin.example' },
    { host: 'admin.example:80', origin: 'http://admin.example' },
    { host: '[::1]:9901', origin: 'http://[::1]:9901' },
    { host: HOST, 'sec-fetch-site': 'same-origin', origin: 'http://proxy.example' },
    { host: HOST, 'sec-fetch-site': 'none' },
  ]) {
    t.equal(foreignSite(headers), undefined, JSON.stringify(headers));
  }
  for (const [headers, site] of [
    [{ host: HOST, origin: 'http://evil.example' }, 'http://evil.example'],
    [{ host: HOST, origin: 'http://admin.example:9902' }, 'http://admin.example:9902'],
    [{ host: HOST, origin: 'http://admin.example' }, 'http://admin.example'],
    [{ host: HOST, origin: 'null' }, 'null'],
    [{ host: HOST, origin: '' }, ''],
    [{ origin: 'http://evil.example' }, 'http://evil.example'],
    [{ host: HOST, 'sec-fetch-site': 'cross-site' }, 'cross-site'],
    [{ host: HOST, 'sec-fetch-site': 'same-site', origin: 'http://www.example' }, 'http://www.example'],
    [{ host: HOST, 'sec-fetch-site': 'cross-site', origin: `http://${HOST}` }, `http://${HOST}`],
  ] as const) {
    t.equal(foreignSite(headers), site, JSON.stringify(headers));
  }
});

t.test('hosts are allowed by name, with any port unless one is listed', async (t) => {
  const isAllowed = allowedHosts(['localhost', '127.0.0.1:9901', '[::1]', '2001:DB8::1']);
  for (const host of [
    'localhost',
    'LOCALHOST:9901',
    'localhost:1',
    '127.0.0.1:9901',
    '[::1]:9901',
    '[::1]',
    '[2001:db8::1]:9901',
  ]) {
    t.ok(isAllowed(host), host);
  }
  for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1:9902', '127.0.0.1', '', undefined]) {
    t.notOk(isAllowed(host), String(host));
  }
  t.ok(allowedHosts([])(undefined), 'without a list every host is allowed');
});
