// The names of the sockets at which the processes of a hot restart meet: two datagram sockets each, named after the base ID and
// the epoch (FACTS §8.1).

/** Processes of one base ID that may overlap: a name must be free again for the third epoch after it. */
const OVERLAPPING = 3;

export interface MeetingNames {
  /** The process's name as a parent: it receives its child's hello here. */
  readonly parent: string;
  /** Its name as a child: it receives its parent's proof here. */
  readonly child: string;
}

/** Returns the names of the process of this epoch. A leading '@' of `socketPath` makes them abstract. */
export function meetingNames(socketPath: string, baseId: number, epoch: number): MeetingNames {
  const id = scaledBaseId(baseId) + epochId(epoch);
  return { parent: `${socketPath}_parent_${id}`, child: `${socketPath}_child_${id}` };
}

/** Returns the names of the processes that this epoch may overlap with. */
export function otherMeetingNames(socketPath: string, baseId: number, epoch: number): MeetingNames[] {
  return [1, 2].map((later) => meetingNames(socketPath, baseId, epoch + later));
}

/** Returns the base ID's number in names and messages; base IDs are 10 apart. */
export function scaledBaseId(baseId: number): number {
  return baseId * 10;
}

/** Returns a number that distinguishes overlapping epochs. */
export function epochId(epoch: number): number {
  return epoch % OVERLAPPING;
}
