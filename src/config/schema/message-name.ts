// The name of the message that an Any holds. Apart from the decoder, because the primary needs it and not the other.

/** The message that a type URL names: what stands behind its last slash. */
export function messageNameOf(typeUrl: string): string {
  return typeUrl.slice(typeUrl.lastIndexOf('/') + 1);
}
