// HttpStatus as the status of an error response.

import t from 'tap';
import { errorStatus } from '../../../src/config/fields/http-status.js';

t.test('the given status, or the fallback if it is not an error status', async (t) => {
  t.equal(errorStatus({ code: 'TooManyRequests' }, 403), 429);
  t.equal(errorStatus({ code: 'NetworkAuthenticationRequired' }, 403), 511);
  t.equal(errorStatus({ code: 'PermanentRedirect' }, 403), 403);
  t.equal(errorStatus({ code: 'Empty' }, 429), 429);
  t.equal(errorStatus({}, 429), 429);
  t.equal(errorStatus(undefined, 429), 429);
});
