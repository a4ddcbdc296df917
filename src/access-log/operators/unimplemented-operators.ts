// Operators of Envoy that Baton does not implement, so that the error does not report an unknown name.

const UNIMPLEMENTED: ReadonlySet<string> = new Set(['DOWNSTREAM_CX_RTT']);

/** Returns whether the name is an operator of Envoy that Baton does not implement. */
export function isUnimplementedOperator(name: string): boolean {
  return UNIMPLEMENTED.has(name);
}
