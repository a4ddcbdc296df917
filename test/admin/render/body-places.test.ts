import t from 'tap';
import { BodyPlaces, NoPlaceError, type PlacedBody } from '../../../src/admin/render/body-places.js';
import { withDeadline } from '../../e2e/harness/wait-for.js';
import { captureLog } from '../capture-log.js';

const OPTIONS = { places: 2, roundMs: 10, leastBytes: 100, maxWaitMs: 60 };

class Body implements PlacedBody {
  waitsForClient = true;
  isCut = false;
  #taken = 0;
  readonly #places: BodyPlaces;
  readonly #speed: number;

  /** `speed`: bytes that its client takes between two looks at it. */
  constructor(places: BodyPlaces, speed: number) {
    this.#places = places;
    this.#speed = speed;
  }

  get takenBytes(): number {
    return (this.#taken += this.#speed);
  }

  cut(): void {
    this.isCut = true;
    this.#places.release(this);
  }
}

t.test('the slowest gives up its place, and only for one that waits', async (t) => {
  captureLog(t);
  const places = new BodyPlaces(OPTIONS);
  const [slow, slowest, next] = [new Body(places, 10), new Body(places, 0), new Body(places, 1000)];
  await places.admit(slow);
  await places.admit(slowest);
  await withDeadline(places.admit(next), 'a place');
  t.ok(slowest.isCut);
  t.notOk(slow.isCut);
});

t.test('who reads, and who waits for a piece, keeps the place; who comes then is told so', async (t) => {
  captureLog(t);
  const places = new BodyPlaces(OPTIONS);
  const [reader, waiting] = [new Body(places, 1000), new Body(places, 0)];
  waiting.waitsForClient = false;
  await places.admit(reader);
  await places.admit(waiting);
  await t.rejects(withDeadline(places.admit(new Body(places, 0)), 'the refusal'), new NoPlaceError(2));
  t.notOk(reader.isCut || waiting.isCut);
  const later = places.admit(new Body(places, 0));
  places.release(reader);
  await withDeadline(later, 'the place that became free');
  t.equal(places.size, 2);
});

t.test('whoever waits when the server ends is told so', async (t) => {
  const places = new BodyPlaces({ ...OPTIONS, places: 0 });
  const waiting = places.admit(new Body(places, 0));
  places.close(new Error('the end'));
  await t.rejects(waiting, { message: 'the end' });
});
