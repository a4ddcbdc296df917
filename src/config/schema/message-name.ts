// The name of the message in an Any. Separate from the decoder because the primary needs only this.

/** An Any within an Any contains a packed message. */
export const ANY = 'google.protobuf.Any';

/** Wrapper of per-route filter configurations, which can enable or disable the filter. */
export const FILTER_CONFIG = 'envoy.config.route.v3.FilterConfig';

/** Returns the name of the message of a type URL: the part after the last slash. */
export function messageNameOf(typeUrl: string): string {
  return typeUrl.slice(typeUrl.lastIndexOf('/') + 1);
}

/** Returns the type URL for a message name or a type URL. */
export function typeUrlOf(name: string): string {
  return name.includes('/') ? name : `type.googleapis.com/${name}`;
}
