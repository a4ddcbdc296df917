// TypedStruct: an Any whose message is a Struct next to its type URL. It is decoded as the message that it stands for, and
// paths ignore it.

const TYPED_STRUCTS = new Set(['xds.type.v3.TypedStruct', 'udpa.type.v1.TypedStruct']);

/** Returns whether a type URL is that of a TypedStruct. */
export function isTypedStruct(url: unknown): boolean {
  return typeof url === 'string' && TYPED_STRUCTS.has(url.slice(url.lastIndexOf('/') + 1));
}

/** Returns the name of the member with the type URL, in the spelling of this value. */
export function typeUrlMember(held: object): 'type_url' | 'typeUrl' {
  return 'typeUrl' in held ? 'typeUrl' : 'type_url';
}
