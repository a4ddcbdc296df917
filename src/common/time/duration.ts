// google.protobuf.Duration as configuration carries it: "1.5s".

/** Milliseconds of a duration such as "0.025s"; fractions of a millisecond stay. Without a duration `otherwise`. */
export function durationMs(duration: string): number;
export function durationMs<T>(duration: string | undefined, otherwise: T): number | T;
export function durationMs<T>(duration: string | undefined, otherwise?: T): number | T {
  return duration === undefined ? otherwise! : Math.round(Number.parseFloat(duration) * 1e9) / 1e6;
}
