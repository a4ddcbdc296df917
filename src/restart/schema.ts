// The messages between the processes of a hot restart, as a protobuf schema in reflection form.
//
// Every version can read field 1 of Hello, the sender's version, and ToChild.refusal, the reason of a refusal.

export const SCHEMA = {
  nested: {
    /** Child to parent, a datagram, with one end of the link. */
    Hello: { fields: { version: { type: 'string', id: 1 }, epoch: { type: 'uint32', id: 2 } } },
    /** Parent to child, all on the link. */
    ToChild: {
      oneofs: { content: { oneof: ['refusal', 'welcome', 'stats', 'handOver', 'empty', 'replaced', 'released'] } },
      fields: {
        refusal: { type: 'string', id: 1 },
        welcome: { type: 'Welcome', id: 2 },
        stats: { type: 'Stats', id: 3 },
        handOver: { type: 'Empty', id: 4 },
        empty: { type: 'Empty', id: 5 },
        replaced: { type: 'Empty', id: 6 },
        released: { type: 'Empty', id: 7 },
      },
    },
    /**
     * Divided into as many messages as the descriptors require, which are in the order of `sockets`. Later messages of this form
     * contain sockets that the parent has added since; a child that does not support that closes them.
     */
    Welcome: {
      fields: {
        /** When the first epoch began, in milliseconds of CLOCK_MONOTONIC, which the processes of a machine share. */
        firstStartedMs: { type: 'double', id: 1 },
        generation: { type: 'uint32', id: 2 },
        sockets: { rule: 'repeated', type: 'Sockets', id: 3 },
        isLast: { type: 'bool', id: 4 },
        ticketKeys: { type: 'TicketKeys', id: 5 },
      },
    },
    TicketKeys: { fields: { keys: { type: 'bytes', id: 1 }, madeMs: { type: 'double', id: 2 } } },
    Sockets: {
      fields: {
        id: { type: 'uint32', id: 1 },
        isAdmin: { type: 'bool', id: 2 },
        name: { type: 'string', id: 3 },
        configured: { type: 'string', id: 4 },
        real: { type: 'string', id: 5 },
        traits: { type: 'string', id: 6 },
        isReusePort: { type: 'bool', id: 7 },
        count: { type: 'uint32', id: 8 },
      },
    },
    /** Divided into messages by size. */
    Stats: {
      fields: {
        sections: { rule: 'repeated', type: 'Section', id: 1 },
        memoryAllocated: { type: 'double', id: 2 },
        connections: { type: 'double', id: 3 },
        isLast: { type: 'bool', id: 4 },
      },
    },
    /** Stats under one prefix. */
    Section: {
      fields: {
        prefix: { type: 'string', id: 1 },
        counters: { rule: 'repeated', type: 'string', id: 2 },
        deltas: { rule: 'repeated', type: 'double', id: 3 },
        flushed: { rule: 'repeated', type: 'double', id: 4 },
        gauges: { rule: 'repeated', type: 'string', id: 5 },
        values: { rule: 'repeated', type: 'double', id: 6 },
      },
    },
    /** Child to parent, all on the link. */
    ToParent: {
      oneofs: { content: { oneof: ['live', 'statsRequest', 'terminate', 'further', 'release', 'alive'] } },
      fields: {
        live: { type: 'Live', id: 1 },
        statsRequest: { type: 'Empty', id: 2 },
        terminate: { type: 'Empty', id: 3 },
        further: { type: 'Further', id: 4 },
        release: { type: 'Release', id: 5 },
        alive: { type: 'Empty', id: 6 },
      },
    },
    Live: {
      fields: {
        taken: { rule: 'repeated', type: 'uint32', id: 1 },
        parentShutdownTimeS: { type: 'uint32', id: 2 },
        connectionWorkers: { type: 'uint32', id: 3 },
      },
    },
    /** Descriptors of the message: `counts` of them for each of `ids`, in their order. */
    Further: {
      fields: { ids: { rule: 'repeated', type: 'uint32', id: 1 }, counts: { rule: 'repeated', type: 'uint32', id: 2 } },
    },
    Release: { fields: { ids: { rule: 'repeated', type: 'uint32', id: 1 } } },
    Empty: { fields: {} },
  },
};
