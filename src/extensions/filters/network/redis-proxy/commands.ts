// The commands that the proxy knows, and which hosts get them.

export const enum CommandKind {
  /** Goes to the host of its first argument, which is a key. */
  Key = 0,
  /** EVAL, EVALSHA: the key is the third argument. */
  Script = 1,
  /** OBJECT: the key is the second argument. */
  Object = 2,
  /** One command for each key; the numbers of the replies are added. */
  Sum = 3,
  MultiGet = 4,
  MultiSet = 5,
  /** Goes to all hosts. */
  AllHosts = 6,
  Scan = 7,
  /** Goes to any host. */
  AnyHost = 8,
  /** MULTI, EXEC, DISCARD, WATCH, UNWATCH. */
  Transaction = 9,
  /** The proxy answers. */
  Own = 10,
}

const SUMS = 'del exists touch unlink';
const ALL_HOSTS = 'config flushall flushdb info keys role script select slowlog';
const ANY_HOST = 'cluster randomkey';
const TRANSACTIONS = 'discard exec multi unwatch watch';
const OWN = 'auth client echo hello ping quit time';

const KEYS = `append bitcount bitfield bitfield_ro bitop bitpos copy decr decrby dump expire expireat geoadd geodist geohash geopos
georadius georadius_ro georadiusbymember georadiusbymember_ro geosearch geosearchstore get getbit getdel getex getrange getset hdel
hexists hexpire hexpireat hexpiretime hget hgetall hincrby hincrbyfloat hkeys hlen hmget hmset hpersist hpexpire hpexpireat hpexpiretime
hpttl hrandfield hscan hset hsetnx hstrlen httl hvals incr incrby incrbyfloat lindex linsert llen lmove lpop lpos lpush lpushx lrange
lrem lset ltrim msetnx persist pexpire pexpireat pfadd pfcount pfmerge psetex pttl publish rename renamenx restore rpop rpoplpush rpush
rpushx sadd scard sdiff sdiffstore set setbit setex setnx setrange sinter sinterstore sismember smembers smismember smove sort sort_ro
spop srandmember srem sscan strlen substr sunion sunionstore ttl type xack xadd xautoclaim xclaim xdel xlen xpending xrange xrevrange
xtrim zadd zcard zcount zdiff zdiffstore zincrby zinter zinterstore zlexcount zmscore zpopmax zpopmin zrandmember zrange zrangebylex
zrangebyscore zrangestore zrank zrem zremrangebylex zremrangebyrank zremrangebyscore zrevrange zrevrangebylex zrevrangebyscore zrevrank
zscan zscore zunion zunionstore`;

const READS = `bitcount bitfield_ro bitpos dump exists geodist geohash geopos georadius_ro georadiusbymember_ro geosearch get getbit
getrange hexists hexpiretime hget hgetall hkeys hlen hmget hpexpiretime hpttl hrandfield hscan hstrlen httl hvals lindex llen lpos lrange
mget pfcount pttl scard sdiff sinter sismember smembers smismember sort_ro srandmember sscan strlen substr sunion touch ttl type xlen
xpending xrange xrevrange zcard zcount zdiff zinter zlexcount zmscore zrandmember zrange zrangebylex zrangebyscore zrank zrevrange
zrevrangebylex zrevrangebyscore zrevrank zscan zscore zunion`;

function words(text: string): string[] {
  return text.split(/\s+/);
}

const READ_NAMES: ReadonlySet<string> = new Set(words(READS));

/** Returns the commands by their names in small letters. */
export function commandKinds(custom: readonly string[]): ReadonlyMap<string, CommandKind> {
  const kinds = new Map<string, CommandKind>();
  const add = (names: readonly string[], kind: CommandKind) => {
    for (const name of names) kinds.set(name, kind);
  };
  add(
    custom.map((name) => name.toLowerCase()),
    CommandKind.Key,
  );
  add(words(KEYS), CommandKind.Key);
  add(words(SUMS), CommandKind.Sum);
  add(words(ALL_HOSTS), CommandKind.AllHosts);
  add(words(ANY_HOST), CommandKind.AnyHost);
  add(words(TRANSACTIONS), CommandKind.Transaction);
  add(words(OWN), CommandKind.Own);
  add(['eval', 'evalsha'], CommandKind.Script);
  add(['object'], CommandKind.Object);
  add(['mget'], CommandKind.MultiGet);
  add(['mset'], CommandKind.MultiSet);
  add(['scan'], CommandKind.Scan);
  return kinds;
}

const STREAMS: ReadonlySet<string> = new Set(words('monitor psubscribe psync reset ssubscribe subscribe sync'));

/** Returns whether a host replies to the command more than once, or forgets its client: connections are shared. */
export function disturbsConnections(name: string): boolean {
  return STREAMS.has(name);
}

/** The commands of the proxy itself that have no stats, as in Envoy. */
const UNCOUNTED: ReadonlySet<string> = new Set(['auth', 'client', 'echo', 'ping', 'quit', 'time']);

export function isCounted(name: string): boolean {
  return !UNCOUNTED.has(name);
}

/** Returns whether the command changes nothing. Of custom commands nothing is known: they count as writes. */
export function isRead(name: string): boolean {
  return READ_NAMES.has(name);
}

/** Commands that are valid without an argument. */
const WITHOUT_ARGUMENTS: ReadonlySet<string> = new Set(
  words('discard exec flushall flushdb hello info multi ping quit randomkey role scan time unwatch watch'),
);

export function needsArgument(name: string): boolean {
  return !WITHOUT_ARGUMENTS.has(name);
}
