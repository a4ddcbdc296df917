// The span of a request whose trace context cannot be read: as in Envoy it is not reported, and the headers stay as they are.

import type { Span } from '../../sdk.js';

export const NO_SPAN: Span = {
  isSampled: false,
  traceId: '',
  spanId: '',
  setOperation() {},
  setTag() {},
  log() {},
  inject() {},
  child: () => NO_SPAN,
  drop() {},
  finish() {},
};
