// What TypeScript makes of the SDK. Nobody runs it: `npm run types` checks it.

import {
  type Cause,
  type DesiredEntry,
  desiredEntry,
  desiredSet,
  HandlerError,
  handlers,
  Input,
  Json,
  log,
  Output,
  type Plan,
  request,
  Result,
  State,
} from 'configurator-sdk';
import { AppConf, Basic, Entry, transaction, TwoLayers } from 'configurator-sdk/configstore';
import { Extension } from 'configurator-sdk/extension';
import { post } from 'configurator-sdk/http';
import { CONFIG_MAP, content, DEPLOYMENT, POD, Resource } from 'configurator-sdk/kubernetes';
import { Secret } from 'configurator-sdk/secretstore';

interface Namespace {
  metadata: { name: string };
}

function root(input: Input<Namespace>): Output {
  const name: string = input.object.metadata.name;
  // @ts-expect-error The object has no such field.
  input.object.spec;
  if (input.event === 'deleted') {
    throw new HandlerError('it is gone', { fatal: true, retryAfter: 1000, code: 'GONE' });
  }
  log.info('seen', { name, tries: 3 });
  const apply = CONFIG_MAP.apply(name, 'hello', { data: {} }, { force: true, uid: 'u', subresource: 'status' });
  return new Output(request('hello', apply, { onError: 'catch-error', of: { namespace: '', name } }))
    .request(request('pods', POD.list(name, { labels: 'a=b', cached: true }), { groupBy: 'pods', timeout: 1500 }))
    .request(request('entry', transaction(Entry.pod('a', 'b', { uid: 'c' }).get(), new Basic('k').put('v'))))
    .request(request('leaf', new TwoLayers('a', 'b').create('1'), { dependsOn: ['hello'], readyWhen: { expression: 'true' } }))
    .request(request('conf', new AppConf('a', 'b').delete(), { readyWhen: 'observed' }))
    .request(request('secret', new Secret('db').createWith({ user: 'app' })))
    .request(request('rotated', new Secret('db').update(3)), request('given', new Secret('db').updateWith(0, 'p')))
    .request(request('address', new Extension('dns').requestWith('upsert', 'example.org/www', { a: 1 })))
    .request(request('hook', post('https://hooks.example.com', { headers: { a: 'b' }, body: new Uint8Array() })))
    .serial()
    .pass('object', input.objectJson)
    .status({ ready: true })
    .event('Seen', 'it was seen', { type: 'warning' });
}

function wait(input: Input): Output {
  const pod = input.answer<{ status: { phase: string } }>('pod');
  const phase: string | undefined = pod?.found?.status.phase;
  const seed: number = input.context.seed;
  const who: string = told(input.context.cause) + seed;
  const count: number = input.arg<number>('count');
  const untouched: Json | undefined = input.argJson('raw');
  const members = [
    desiredEntry('a', {}, { readyWhen: 'healthy', onDelete: 'retain', ignoredPaths: ['.spec.replicas'] }),
    desiredEntry('b', new Secret('db').contentWith({ user: 'app' }), { dependsOn: ['a'], onExisting: 'create-only', timeout: 1000 }),
    desiredEntry('c', new Basic('k').content('v', { partition: 'team-a' })),
  ];
  const preTerminate = [request('pod', POD.delete('shop', 'web'))];
  return new Output()
    .data({ phase, who, count, untouched })
    .wait({ after: 1000, signals: ['go'], objects: [DEPLOYMENT.key('shop', 'web')] })
    .desired(desiredSet(members, { terminationPolicy: 'wipe-out', terminate: [['b'], ['a']], preTerminate }))
    .progress(50, 'half');
}

function plan(input: Input): Output {
  const planned: Plan | undefined = input.plan;
  const output = new Output(...(planned?.requests.resourceRequests ?? []));
  if (!planned?.desired) {
    return output.read(request('key', new Basic('k').get())).removeFromPlan('a', 'b');
  }
  const labelled = (entry: DesiredEntry): DesiredEntry => {
    if (entry.content.tag !== 'kubernetes') {
      return entry;
    }
    const object: { metadata: object } = new Json(entry.content.val).value;
    return { ...entry, content: content({ ...object, metadata: { ...object.metadata, labels: {} } }) };
  };
  const entries = [...planned.desired.entries.map(labelled), desiredEntry('new', {})];
  return output.desired({ ...planned.desired, entries });
}

function told(cause: Cause): string {
  switch (cause.kind) {
    case 'signal':
      return cause.signal.name;
    case 'changed':
      return cause.changed.plural;
    default:
      return cause.kind;
  }
}

// @ts-expect-error A handler returns an output.
const nothing = handlers({ root: () => undefined });

// @ts-expect-error There is no such verb.
new Resource('', 'v1', 'pods', 'Pod').watch('a', 'b');

// @ts-expect-error What becomes of failures is spelled otherwise.
request('a', new Basic('k').get(), { onError: 'catchError' });

// @ts-expect-error A set is made by `desiredSet`.
new Output().desired([]);

// @ts-expect-error There is no such policy.
desiredSet([], { terminationPolicy: 'halt' });

const declared = handlers({
  root,
  plan,
  wait: { run: wait, accepts: 'either', view: 'check-list', description: 'Waits.', parametersSchema: { type: 'object' }, capabilities: {} },
});

const state = State.of({ data: { tries: 2 }, results: [Result.answered('pod', [{ n: 1 }])], error: new HandlerError('no') });
const input = Input.of({ object: { metadata: { name: 'shop' } }, last: state, cause: { signal: { name: 'go' } }, planOf: new Output() });
const name: string = input.object.metadata.name;
const output: Output = declared.call('root', input);
const requests: string[] = output.requests.map((one) => one.requestName);
const timeouts: (number | undefined)[] = output.requests.map((one) => one.timeout);
const cookies = post('https://hooks.example.com', { headers: [['cookie', 'a=1'], ['cookie', 'b=2']] });
const failed = Result.failed('a', 'resource-not-found', 'it is not there');
export { cookies, failed, name, nothing, requests, timeouts };
