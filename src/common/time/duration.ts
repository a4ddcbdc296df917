// google.protobuf.Duration as the configuration contains it: "1.5s".

/** Returns the milliseconds of a duration such as "0.025s", including fractions; `fallback` if there is no duration. */
export function durationMs(duration: string): number;
export function durationMs<T>(duration: string | undefined, fallback: T): number | T;
export function durationMs<T>(duration: string | undefined, fallback?: T): number | T {
  return duration === undefined ? fallback! : Math.round(Number.parseFloat(duration) * 1e9) / 1e6;
}
