// The name of the message that an Any holds. It stands apart from the decoder because the primary needs only this.

/** Packed in another one it holds a message once more. */
export const ANY = 'google.protobuf.Any';

/** What routes say to a filter, with a switch. */
export const FILTER_CONFIG = 'envoy.config.route.v3.FilterConfig';

/** The message that a type URL names: what stands behind its last slash. */
export function messageNameOf(typeUrl: string): string {
  return typeUrl.slice(typeUrl.lastIndexOf('/') + 1);
}

/** The type URL of a message given by its name or its URL. */
export function typeUrlOf(name: string): string {
  return name.includes('/') ? name : `type.googleapis.com/${name}`;
}
