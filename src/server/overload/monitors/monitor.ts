// The interface of resource monitors that the overload manager queries at an interval.

export interface ResourceMonitor {
  /** Returns the pressure: 0 for an unused resource, 1 for an exhausted one. Throws when it cannot be read. */
  read(): number;
}
