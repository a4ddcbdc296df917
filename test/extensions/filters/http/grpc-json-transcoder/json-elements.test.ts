// Elements of a JSON array that arrives in pieces.

import t from 'tap';
import { JsonElements } from '../../../../../src/extensions/filters/http/grpc-json-transcoder/json-elements.js';

const ARRAY = ` [ {"a":"]\\\\","b":[{},'x\\'y']} , 15,"q\\"," ,{}, true ]`;
const ELEMENTS = [`{"a":"]\\\\","b":[{},'x\\'y']}`, '15', `"q\\","`, '{}', 'true'];

t.test('the pieces make no difference', (t) => {
  for (let size = 1; size <= ARRAY.length; size++) {
    const elements = new JsonElements();
    const found: string[] = [];
    for (let at = 0; at < ARRAY.length; at += size) {
      elements.push(ARRAY.slice(at, at + size));
      for (let text = elements.next(); text !== undefined; text = elements.next()) found.push(text);
    }
    elements.end();
    t.strictSame(
      { found, error: elements.error, held: elements.heldBytes },
      { found: ELEMENTS, error: undefined, held: 0 },
    );
  }
  t.end();
});

t.test('bytes of an element count until it is complete', (t) => {
  const elements = new JsonElements();
  const next = (text: string) => {
    elements.push(text);
    return [elements.next(), elements.heldBytes];
  };
  t.strictSame(next('[{"a"'), [undefined, 4]);
  t.strictSame(next(':"\\'), [undefined, 7]);
  t.strictSame(next('""}'), ['{"a":"\\""}', 0]);
  t.strictSame(next(',{'), [undefined, 1]);
  elements.end();
  t.match(elements.error, /^Unexpected end of string/);
  t.end();
});
