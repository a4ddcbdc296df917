// The states of a server, in the order of their numbers in server.state.

export const enum ServerState {
  Live = 0,
  Draining = 1,
  PreInitializing = 2,
  Initializing = 3,
}

/** As /ready and /server_info show them. */
export const STATE_NAMES = ['LIVE', 'DRAINING', 'PRE_INITIALIZING', 'INITIALIZING'] as const;
