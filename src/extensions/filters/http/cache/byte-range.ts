// The range of a request (RFC 9110, section 14.1.2): one range of bytes. As in Envoy, several ranges get the whole response.

/** Bytes from `start` up to `end`; 'unsatisfiable': the body has none of them; undefined: the whole body. */
export type ByteRange = { readonly start: number; readonly end: number } | 'unsatisfiable' | undefined;

/** `field`: the value of the field range; undefined: there is none, or several. `length`: that of the body. */
export function byteRange(field: string | undefined, length: number): ByteRange {
  const match = field === undefined ? null : /^bytes=(\d{0,15})-(\d{0,15})$/.exec(field);
  if (match === null) return undefined;
  const [, first = '', last = ''] = match;
  if (first === '' && last === '') return undefined;
  if (first === '') return suffix(Number(last), length);
  const start = Number(first);
  const end = last === '' ? length : Math.min(Number(last) + 1, length);
  if (last !== '' && Number(last) < start) return undefined;
  return start >= length ? 'unsatisfiable' : whole(start, end, length);
}

function suffix(count: number, length: number): ByteRange {
  if (count === 0 || length === 0) return 'unsatisfiable';
  return whole(Math.max(0, length - count), length, length);
}

function whole(start: number, end: number, length: number): ByteRange {
  return start === 0 && end === length ? undefined : { start, end };
}
