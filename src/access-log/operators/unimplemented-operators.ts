// Operators of Envoy that Baton does not implement, so that the error does not report an unknown name.

const NAMES = `
CEL DOWNSTREAM_CX_RTT DOWNSTREAM_TLS_GROUP TYPED_CEL UPSTREAM_SERVER_NAME
UPSTREAM_TLS_GROUP`;

const UNIMPLEMENTED = new Set(NAMES.trim().split(/\s+/));

/** TLS properties of both sides. */
const FAMILIES =
  /^(?:UP|DOWN)STREAM_(?:TLS_(?:CIPHER|VERSION|SESSION_ID)|(?:PEER|LOCAL)_(?:SUBJECT|ISSUER|SERIAL|CERT\w*|FINGERPRINT\w+|CHAIN\w+|ISSUER\w+|\w+_SAN))$/;

/** Returns whether the name is an operator of Envoy that Baton does not implement. */
export function isUnimplementedOperator(name: string): boolean {
  return UNIMPLEMENTED.has(name) || FAMILIES.test(name);
}
