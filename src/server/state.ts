// The states of a server, with their values in the gauge server.state.

export const enum ServerState {
  Live = 0,
  Draining = 1,
  PreInitializing = 2,
  Initializing = 3,
}

/** As shown by /ready and /server_info. */
export const STATE_NAMES = ['LIVE', 'DRAINING', 'PRE_INITIALIZING', 'INITIALIZING'] as const;
