// The DNS filter of one listener on one worker: answers queries from its table, from the hosts of clusters, and from name servers.

import {
  type Clock,
  type ClusterManager,
  type Datagram,
  type DatagramPath,
  type DatagramSender,
  type DatagramSockets,
  DnsFilterStats,
  parseIp,
  type Random,
  type Scope,
  type UdpListenerFilter,
  type UdpSocket,
} from '../../../sdk.js';
import type { ExternalNames } from './external-names.js';
import { type Answer, AnswerSource, IP4_BYTES, IP6_BYTES, LocalNames } from './local-names.js';
import { encodeResponse, parseQuery, type Query, QueryMistake, RecordType, ResponseCode } from './message.js';
import type { QueryLog } from './query-log.js';
import { DEFAULT_TTL_SECONDS, type DomainTable } from './table.js';

const { at } = DnsFilterStats;

export interface DnsFilterParts {
  readonly table: DomainTable;
  readonly clusters: ClusterManager;
  /** Undefined: names that the table does not have are not resolved. */
  readonly external: ExternalNames | undefined;
  readonly log: QueryLog;
  /** With DnsFilterStats. */
  readonly stats: Scope;
  readonly sockets: DatagramSockets;
  readonly clock: Clock;
  readonly random: Random;
}

/** A query and the way back to its client. */
interface Asked {
  readonly query: Query;
  readonly path: DatagramPath;
  readonly socket: UdpSocket;
  readonly startMs: number;
}

const NOTHING: Answer = { source: AnswerSource.Local, records: [], additional: [] };

export class DnsFilter implements UdpListenerFilter, DatagramSender {
  readonly #parts: DnsFilterParts;
  readonly #local: LocalNames;
  #isClosed = false;

  constructor(parts: DnsFilterParts) {
    this.#parts = parts;
    this.#local = new LocalNames(parts);
  }

  get openSessions(): number {
    return this.#parts.external?.pending ?? 0;
  }

  onDatagram(datagram: Datagram, socket: UdpSocket): boolean {
    const { clock, sockets, stats } = this.#parts;
    stats.increment(at.downstream_rx_queries);
    stats.record(at.downstream_rx_bytes, datagram.length);
    const query = parseQuery(sockets.memory.subarray(datagram.offset, datagram.offset + datagram.length));
    const asked = { query, path: datagram.path(), socket, startMs: clock.monotonicMs };
    if (query.hasAdditional) stats.increment(at.queries_with_additional_rrs);
    if (query.mistake !== QueryMistake.None) this.#refuse(asked);
    else this.#resolve(asked);
    return false;
  }

  onReceiveError(): void {
    this.#parts.stats.increment(at.downstream_rx_errors);
  }

  onSent(): void {}

  close(): void {
    this.#isClosed = true;
    this.#parts.external?.close();
    this.#parts.log.close();
  }

  #refuse(asked: Asked): void {
    const { stats } = this.#parts;
    const { mistake } = asked.query;
    stats.increment(at.downstream_rx_invalid_queries);
    if (mistake === QueryMistake.Underflow) stats.increment(at.query_buffer_underflow);
    if (mistake === QueryMistake.HasRecords || mistake === QueryMistake.Response)
      stats.increment(at.queries_with_ans_or_authority_rrs);
    if (mistake === QueryMistake.Question) stats.increment(at.query_parsing_failure);
    if (mistake === QueryMistake.Response)
      this.#parts.log.log({ ...asked, code: ResponseCode.FormatError, answers: 0 });
    else this.#send(asked, ResponseCode.FormatError, NOTHING);
  }

  #resolve(asked: Asked): void {
    const { external, stats, table } = this.#parts;
    const { name, type } = asked.query;
    const isKnown = table.knows(name);
    if (isKnown) stats.increment(at.known_domain_queries);
    if (!isSupported(type)) {
      stats.increment(at.unsupported_queries);
      if (external !== undefined) this.#countUnsupportedExternal();
      return this.#answer(asked, ResponseCode.NotImplemented, NOTHING);
    }
    stats.increment(QUERY_COUNTERS[type]);
    const found = isKnown ? this.#local.resolve(name, type) : undefined;
    if (found !== undefined || external === undefined)
      return this.#answer(
        asked,
        found?.records.length ? ResponseCode.NoError : ResponseCode.NameError,
        found ?? NOTHING,
      );
    if (type === RecordType.Srv) {
      this.#countUnsupportedExternal();
      return this.#answer(asked, ResponseCode.NameError, NOTHING);
    }
    stats.increment(at.externally_resolved_queries);
    stats.increment(type === RecordType.A ? at.external_a_record_queries : at.external_aaaa_record_queries);
    external.resolve(name, type === RecordType.Aaaa, (addresses) => {
      if (!this.#isClosed) this.#answerFrom(asked, type, addresses);
    });
  }

  /** As in Envoy, queries that no name server gets count as externally resolved too. */
  #countUnsupportedExternal(): void {
    this.#parts.stats.increment(at.externally_resolved_queries);
    this.#parts.stats.increment(at.external_unsupported_queries);
  }

  /** Answers with the addresses that name servers have returned. */
  #answerFrom(asked: Asked, type: RecordType, addresses: readonly string[]): void {
    const { stats } = this.#parts;
    const { name } = asked.query;
    const bytes = type === RecordType.A ? IP4_BYTES : IP6_BYTES;
    const records = addresses.flatMap((address) => {
      const data = parseIp(address);
      // A name that is itself an address may be one of the other family.
      return data?.length === bytes ? [{ name, type, ttlSeconds: DEFAULT_TTL_SECONDS, data }] : [];
    });
    stats.add(type === RecordType.A ? at.external_a_record_answers : at.external_aaaa_record_answers, records.length);
    const code = records.length > 0 ? ResponseCode.NoError : ResponseCode.NameError;
    this.#answer(asked, code, { source: AnswerSource.Local, records, additional: [] });
  }

  #answer(asked: Asked, code: ResponseCode, answer: Answer): void {
    if (answer.records.length === 0) this.#parts.stats.increment(at.unanswered_queries);
    this.#send(asked, code, answer);
  }

  #send({ path, query, socket, startMs }: Asked, code: ResponseCode, { additional, records: answers }: Answer): void {
    const { clock, external, log, sockets, stats } = this.#parts;
    const isParsed = query.mistake === QueryMistake.None;
    const isRecursive = isParsed && external !== undefined;
    const bytes = encodeResponse(query, { code, isRecursive, answers, additional });
    stats.increment(at.downstream_tx_responses);
    stats.record(at.downstream_tx_bytes, bytes.length);
    stats.record(at.downstream_rx_query_latency, clock.monotonicMs - startMs);
    log.log({ query, code, answers: answers.length, path, socket, startMs });
    socket.send(sockets.place(bytes), bytes.length, path, this);
  }
}

type SupportedType = RecordType.A | RecordType.Aaaa | RecordType.Srv;

function isSupported(type: number): type is SupportedType {
  return type === RecordType.A || type === RecordType.Aaaa || type === RecordType.Srv;
}

const QUERY_COUNTERS = {
  [RecordType.A]: at.a_record_queries,
  [RecordType.Aaaa]: at.aaaa_record_queries,
  [RecordType.Srv]: at.srv_record_queries,
};
