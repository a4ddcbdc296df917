// google.protobuf.Duration as configuration carries it: "1.5s".

/** Milliseconds of a duration such as "0.025s"; fractions of a millisecond stay. */
export function durationMs(duration: string): number {
  return Math.round(Number.parseFloat(duration) * 1e9) / 1e6;
}
