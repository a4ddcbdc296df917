// Values of header fields from outside, of which a part is not checked by a codec.

/** Matches what a field may have (RFC 9110, 5.5), with one character for each byte. */
export const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
