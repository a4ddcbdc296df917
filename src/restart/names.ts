// Where the processes of a hot restart meet: two datagram sockets each, named after the base ID and the epoch (FACTS §8.1).

/** Processes of one base ID that may overlap: a name is free again when the third next epoch wants it. */
const OVERLAPPING = 3;

export interface MeetingNames {
  /** Where the process is spoken to as a parent: the hello of its child comes here. */
  readonly parent: string;
  /** Where it is spoken to as a child: its parent proves here who it is. */
  readonly child: string;
}

/** The names of the process of this epoch. A leading '@' of `socketPath` makes them abstract. */
export function meetingNames(socketPath: string, baseId: number, epoch: number): MeetingNames {
  const id = scaledBaseId(baseId) + epochId(epoch);
  return { parent: `${socketPath}_parent_${id}`, child: `${socketPath}_child_${id}` };
}

/** Names of the processes that this epoch may overlap with. */
export function otherMeetingNames(socketPath: string, baseId: number, epoch: number): MeetingNames[] {
  return [1, 2].map((later) => meetingNames(socketPath, baseId, epoch + later));
}

/** Base IDs are this far apart in names and messages. */
export function scaledBaseId(baseId: number): number {
  return baseId * 10;
}

/** What tells epochs apart that may overlap. */
export function epochId(epoch: number): number {
  return epoch % OVERLAPPING;
}
