// Sets of an owner, and the plan of a pipeline.

import { desiredEntry, desiredSet, HandlerError, Json, Output, request } from 'configurator-sdk';
import { AppConf, Basic, Entry, TwoLayers } from 'configurator-sdk/configstore';
import { Extension } from 'configurator-sdk/extension';
import { content, POD } from 'configurator-sdk/kubernetes';
import { Secret } from 'configurator-sdk/secretstore';

import { parameter } from './parameter.js';

export function desired(input) {
  return new Output().desired(members(parameter(input, 'set')));
}

/** The set of this name. */
function members(name) {
  switch (name) {
    case 'dependencies':
      return desiredSet([
        map('a'),
        map('b', { dependsOn: ['a'] }),
        map('c', { dependsOn: ['a'] }),
        map('d', { dependsOn: ['b', 'c'] }),
      ]);
    case 'readiness': {
      const readyWhen = { expression: "object.data.ready == 'yes'" };
      return desiredSet([
        map('a', { readyWhen: 'exists' }),
        map('b', { readyWhen: 'observed' }),
        map('c', { readyWhen: 'healthy' }),
        map('d', { readyWhen, failedWhen: "object.data.ready == 'never'", timeout: 90_000 }),
      ]);
    }
    case 'policies':
      return desiredSet([
        map('a', { onExisting: 'refuse', onConflict: 'fail', onImmutable: 'fail', onDelete: 'with-owner' }),
        map('b', { onExisting: 'adopt', onConflict: 'force', onImmutable: 'recreate', onDelete: 'retain' }),
        map('c', {
          onExisting: 'create-only',
          onDelete: 'only-under-wipe-out',
          ignoredPaths: ['.data.count', ".metadata.labels['a/b']"],
        }),
      ]);
    case 'config':
      return desiredSet([
        desiredEntry('pod', Entry.pod('shop', 'web', { uid: '6e2d' }).content('a')),
        desiredEntry('node', Entry.node('node-1').content('b')),
        desiredEntry('namespace', Entry.namespace('shop').content('c')),
        desiredEntry('workload', Entry.workload('shop', 'Deployment', 'web').content('d')),
        desiredEntry('app-conf', new AppConf('web', 'log.level').content('info')),
        desiredEntry('app-conf-elsewhere', new AppConf('web', 'log.level', { namespace: 'shop' }).content('é')),
        desiredEntry('basic', new Basic('region').content('north', { partition: 'team-a' })),
        desiredEntry('two-layers', new TwoLayers('teams', 'red').content('')),
      ]);
    case 'secrets':
      return desiredSet([
        desiredEntry('generated', new Secret('db').content()),
        desiredEntry('given', new Secret('api').contentWith({ user: 'a' })),
        desiredEntry('elsewhere', new Secret('db').content({ partition: 'team-a' })),
      ]);
    case 'empty':
      return desiredSet([], { allowEmpty: true });
    case 'orders':
      return desiredSet([map('a'), map('b'), map('c')], {
        provision: [['a'], ['b', 'c']],
        update: [['c'], ['a']],
        terminate: [['b'], ['a']],
      });
    case 'policy':
      return desiredSet([map('a')], { terminationPolicy: 'wipe-out' });
    case 'policy-path':
      return desiredSet([map('a')], { terminationPolicyAt: '.spec.terminationPolicy' });
    case 'pre-terminate': {
      const key = new Basic('region').delete();
      const preTerminate = [
        request('pod', POD.delete('shop', 'web')),
        request('key', key, { dependsOn: ['pod'], readyWhen: 'exists' }),
      ];
      return desiredSet([map('a')], { preTerminate });
    }
    default:
      throw new HandlerError(`there is no set ${name}`, { fatal: true });
  }
}

function map(name, options) {
  return desiredEntry(name, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'shop', name } }, options);
}

/** Passes on the names of the plan, gives each object a label, and removes what is called `old`. */
export function plan({ plan: planned }) {
  const output = new Output();
  if (!planned) {
    return output.pass('is-planned', false);
  }
  const seen = [];
  for (const one of planned.requests.resourceRequests) {
    seen.push(`request ${one.requestName}`);
    if (one.requestName === 'old') {
      output.removeFromPlan('old');
    } else {
      output.request(one);
    }
  }
  if (planned.desired) {
    const entries = [];
    for (const entry of planned.desired.entries) {
      seen.push(`entry ${entry.name}`);
      if (entry.name === 'old') {
        output.removeFromPlan('old');
      } else {
        entries.push(labelled(entry));
      }
    }
    output.desired({ ...planned.desired, entries });
  }
  return output.pass('seen', seen);
}

function labelled(entry) {
  if (entry.content.tag !== 'kubernetes') {
    return entry;
  }
  const object = new Json(entry.content.val).value;
  object.metadata.labels = { ...object.metadata.labels, planned: 'yes' };
  return { ...entry, content: content(object) };
}

/** Reads before it plans. */
export function planReads(input) {
  const answer = input.answer('class');
  if (answer) {
    return new Output().pass('found', !answer.error);
  }
  return new Output().read(
    request('class', new Basic('class').get(), { onError: 'catch-error' }),
    request('pods', POD.list('shop')),
  );
}

export function extension() {
  const dns = new Extension('dns');
  return new Output(
    request('delete', dns.request('delete', 'example.org/www')),
    request('upsert', dns.requestWith('upsert', 'example.org/é', { a: ['192.0.2.1'] })),
  );
}
