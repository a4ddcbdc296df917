// TypedStruct: an Any whose message is written as a Struct beside its type URL. It is read as the message that it stands for, so
// paths lead through it as if it were not there.

const TYPED_STRUCTS = new Set(['xds.type.v3.TypedStruct', 'udpa.type.v1.TypedStruct']);

/** Whether a type URL is that of a TypedStruct. */
export function isTypedStruct(url: unknown): boolean {
  return typeof url === 'string' && TYPED_STRUCTS.has(url.slice(url.lastIndexOf('/') + 1));
}

/** The member that holds the type URL, in the spelling of this one. */
export function typeUrlMember(held: object): 'type_url' | 'typeUrl' {
  return 'typeUrl' in held ? 'typeUrl' : 'type_url';
}
