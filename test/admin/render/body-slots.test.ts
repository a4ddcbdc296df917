import t from 'tap';
import { BodySlots, NoSlotError, type SlotHolder } from '../../../src/admin/render/body-slots.js';
import { withDeadline } from '../../e2e/harness/wait-for.js';
import { captureLog } from '../capture-log.js';

const OPTIONS = { slots: 2, roundMs: 10, minBytes: 100, maxWaitMs: 60 };

class Body implements SlotHolder {
  waitsForClient = true;
  isCut = false;
  #readBytes = 0;
  readonly #slots: BodySlots;
  readonly #speed: number;

  /** `speed`: bytes that its client reads between two checks. */
  constructor(slots: BodySlots, speed: number) {
    this.#slots = slots;
    this.#speed = speed;
  }

  get readBytes(): number {
    return (this.#readBytes += this.#speed);
  }

  cut(): void {
    this.isCut = true;
    this.#slots.release(this);
  }
}

t.test('the slowest body loses its slot, and only if another one waits', async (t) => {
  captureLog(t);
  const slots = new BodySlots(OPTIONS);
  const [slow, slowest, next] = [new Body(slots, 10), new Body(slots, 0), new Body(slots, 1000)];
  await slots.admit(slow);
  await slots.admit(slowest);
  await withDeadline(slots.admit(next), 'a slot');
  t.ok(slowest.isCut);
  t.notOk(slow.isCut);
});

t.test('a client that reads or waits for a piece keeps its slot, and a later body is refused', async (t) => {
  captureLog(t);
  const slots = new BodySlots(OPTIONS);
  const [reader, waiting] = [new Body(slots, 1000), new Body(slots, 0)];
  waiting.waitsForClient = false;
  await slots.admit(reader);
  await slots.admit(waiting);
  await t.rejects(withDeadline(slots.admit(new Body(slots, 0)), 'the refusal'), new NoSlotError(2));
  t.notOk(reader.isCut || waiting.isCut);
  const later = slots.admit(new Body(slots, 0));
  slots.release(reader);
  await withDeadline(later, 'the slot that became free');
  t.equal(slots.size, 2);
});

t.test('bodies that wait when the server ends are refused', async (t) => {
  const slots = new BodySlots({ ...OPTIONS, slots: 0 });
  const waiting = slots.admit(new Body(slots, 0));
  slots.close(new Error('the end'));
  await t.rejects(waiting, { message: 'the end' });
});
