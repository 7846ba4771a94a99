"""The contract `configurator:handler@0.1.0` in classes, for tests outside of a module. What each means is in its files."""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class Level(Enum):
    """How important a line of the log is."""

    TRACE = 0
    DEBUG = 1
    INFO = 2
    WARN = 3
    ERROR = 4


class RequestSink(Enum):
    """The server that a request goes to."""

    KUBERNETES = 0
    CONFIGSTORE = 1
    SECRETSTORE = 2
    HTTP = 3
    EXTENSION = 4


class ErrorKind(Enum):
    """What went wrong, in the words that every sink shares.

    - `RETRY_EXCEED_LIMIT`: retried as often as its policy allows, and still failing.
    - `RESOURCE_GENERIC`: a failure that fits no other kind. Not retryable.
    - `RESOURCE_NOT_FOUND`: the server has no such resource. Retryable.
    - `RESOURCE_CONFLICT`: another writer changed the resource first. Retryable.
    - `RESOURCE_MUTATION`: the server refused or failed to make the change. Retryable.
    - `RESOURCE_PERMISSION`: the server or the Configurator's capabilities forbid it. Not retryable.
    - `UNSUPPORTED_RESOURCE_OPERATION`: the sink has no such operation on this resource. Not retryable.
    - `API_SERVER_UNAVAILABLE`, `CONFIGSTORE_UNAVAILABLE`, `SECRETSTORE_UNAVAILABLE`, `HTTP_UNAVAILABLE`, `EXTENSION_UNAVAILABLE`: it cannot be
      reached. Retryable.
    - `OUTCOME_UNKNOWN`: a request with `once` was sent and its answer was lost. Not retryable; a person decides.
    - `NOT_SENT`: an earlier request, or one that it depends on, failed. Not retryable by itself.
    """

    RETRY_EXCEED_LIMIT = 0
    RESOURCE_GENERIC = 1
    RESOURCE_NOT_FOUND = 2
    RESOURCE_CONFLICT = 3
    RESOURCE_MUTATION = 4
    RESOURCE_PERMISSION = 5
    UNSUPPORTED_RESOURCE_OPERATION = 6
    API_SERVER_UNAVAILABLE = 7
    CONFIGSTORE_UNAVAILABLE = 8
    SECRETSTORE_UNAVAILABLE = 9
    HTTP_UNAVAILABLE = 10
    EXTENSION_UNAVAILABLE = 11
    OUTCOME_UNKNOWN = 12
    NOT_SENT = 13


@dataclass
class ObjectRef:
    """One object of a batch."""

    namespace: str
    name: str


@dataclass
class ObjectKey:
    """Any object of the cluster."""

    group: str
    version: str
    plural: str
    namespace: str
    name: str


@dataclass
class RequestError:
    """Why a request failed. `status` is the server's own, where it has one: an HTTP status, or a gRPC code."""

    kind: ErrorKind
    message: str
    retryable: bool
    status: int | None


class ExecuteStrategy(Enum):
    SERIAL = 0
    PARALLEL = 1
    GRAPH = 2


class BatchErrorStrategy(Enum):
    """What becomes of a failed request that has a `group_by`.

    - `DROP_ERROR`: its result is left out of the group.
    - `CATCH_ERROR`: its result joins the group, with its error.
    """

    DROP_ERROR = 0
    CATCH_ERROR = 1


class OnError(Enum):
    """What becomes of a failed request.

    - `FAIL`: the phase fails with it.
    - `CATCH_ERROR`: the next handler gets its result, with its error.
    - `DROP_ERROR`: the next handler gets no result of it.
    """

    FAIL = 0
    CATCH_ERROR = 1
    DROP_ERROR = 2


@dataclass
class Readiness_Exists:
    pass


@dataclass
class Readiness_Observed:
    pass


@dataclass
class Readiness_Healthy:
    pass


@dataclass
class Readiness_Expression:
    value: str


Readiness: TypeAlias = Readiness_Exists | Readiness_Observed | Readiness_Healthy | Readiness_Expression


class KubernetesVerb(Enum):
    GET = 0
    LIST = 1
    PATCH = 2
    DELETE = 3
    CREATE = 4
    REPLACE = 5
    APPLY = 6


class PatchType(Enum):
    """How a patch is read: as a JSON merge patch (RFC 7386), a JSON patch (RFC 6902), or as Kubernetes merges lists by their keys."""

    MERGE = 0
    JSON_PATCH = 1
    STRATEGIC = 2


class PropagationPolicy(Enum):
    """What becomes of the objects that a deleted one owns: deleted after it, deleted before it, or kept."""

    BACKGROUND = 0
    FOREGROUND = 1
    ORPHAN = 2


@dataclass
class Precondition:
    uid: str | None
    resource_version: str | None


@dataclass
class KubernetesResourceRequest:
    group: str
    version: str
    plural: str
    kind: str
    namespace: str
    name: str
    verb: KubernetesVerb
    subresource: str | None
    field_selector: str | None
    label_selector: str | None
    resource_body: str | None
    patch_type: PatchType | None
    precheck_exist: bool | None
    force: bool | None
    cached: bool | None
    propagation_policy: PropagationPolicy | None
    precondition: Precondition | None


class ConfigType(Enum):
    POD = 0
    NODE = 1
    NAMESPACE = 2
    WORKLOAD = 3


class ConfigVerb(Enum):
    GET = 0
    DELETE = 1
    UPDATE = 2
    CREATE = 3


@dataclass
class ConfigResourceRequest:
    config_type: ConfigType
    config_verb: ConfigVerb
    resource_name: str
    resource_uid: str | None
    namespace: str | None
    workload_kind: str | None
    value: str | None


class ConfigAppConfVerb(Enum):
    CREATE = 0
    DELETE = 1
    UPDATE = 2


@dataclass
class ConfigAppConfRequest:
    verb: ConfigAppConfVerb
    pod_name: str
    namespace: str | None
    key: str
    value: str | None


class ConfigBasicVerb(Enum):
    GET = 0
    PUT = 1
    DELETE = 2


@dataclass
class ConfigBasicRequest:
    verb: ConfigBasicVerb
    key: str
    value: str | None


class ConfigTwoLayersVerb(Enum):
    GET = 0
    CREATE = 1
    UPDATE = 2
    DELETE = 3


@dataclass
class ConfigTwoLayersRequest:
    verb: ConfigTwoLayersVerb
    second_path: str
    third_path: str
    value: str | None


@dataclass
class ConfigOperation_Resource:
    value: ConfigResourceRequest


@dataclass
class ConfigOperation_AppConf:
    value: ConfigAppConfRequest


@dataclass
class ConfigOperation_Basic:
    value: ConfigBasicRequest


@dataclass
class ConfigOperation_TwoLayers:
    value: ConfigTwoLayersRequest


ConfigOperation: TypeAlias = (
    ConfigOperation_Resource | ConfigOperation_AppConf | ConfigOperation_Basic | ConfigOperation_TwoLayers
)


@dataclass
class ConfigTransaction:
    operations: list[ConfigOperation]


class SecretVerb(Enum):
    GET = 0
    CREATE = 1
    UPDATE = 2
    DELETE = 3


@dataclass
class SecretRequest:
    secret_name: str
    verb: SecretVerb
    value: str | None
    version: int | None


@dataclass
class HttpRequest:
    method: str
    url: str
    headers: list[tuple[str, str]]
    body: bytes | None


@dataclass
class ExtensionRequest:
    extension: str
    verb: str
    target: str
    body: str | None


@dataclass
class Operation_Kubernetes:
    value: KubernetesResourceRequest


@dataclass
class Operation_ConfigResource:
    value: ConfigResourceRequest


@dataclass
class Operation_ConfigAppConf:
    value: ConfigAppConfRequest


@dataclass
class Operation_ConfigBasic:
    value: ConfigBasicRequest


@dataclass
class Operation_ConfigTwoLayers:
    value: ConfigTwoLayersRequest


@dataclass
class Operation_ConfigTransaction:
    value: ConfigTransaction


@dataclass
class Operation_Secret:
    value: SecretRequest


@dataclass
class Operation_Http:
    value: HttpRequest


@dataclass
class Operation_Extension:
    value: ExtensionRequest


Operation: TypeAlias = (
    Operation_Kubernetes
    | Operation_ConfigResource
    | Operation_ConfigAppConf
    | Operation_ConfigBasic
    | Operation_ConfigTwoLayers
    | Operation_ConfigTransaction
    | Operation_Secret
    | Operation_Http
    | Operation_Extension
)


@dataclass
class ResourceRequest:
    request_name: str
    is_declarative: bool
    group_by: str | None
    bootstrap_dep: bool
    of: ObjectRef | None
    on_error: OnError | None
    depends_on: list[str]
    ready_when: Readiness | None
    once: bool
    timeout: int | None
    partition: str | None
    operation: Operation


@dataclass
class Requests:
    execute_strategy: ExecuteStrategy | None
    resource_requests: list[ResourceRequest]
    batch_error_strategy: BatchErrorStrategy | None


@dataclass
class ConfigResourceKey:
    config_type: ConfigType
    resource_name: str
    resource_uid: str | None
    namespace: str | None
    workload_kind: str | None


@dataclass
class ConfigAppConfKey:
    pod_name: str
    namespace: str | None
    key: str


@dataclass
class ConfigTwoLayersKey:
    second_path: str
    third_path: str


@dataclass
class ConfigKey_Resource:
    value: ConfigResourceKey


@dataclass
class ConfigKey_AppConf:
    value: ConfigAppConfKey


@dataclass
class ConfigKey_Basic:
    value: str


@dataclass
class ConfigKey_TwoLayers:
    value: ConfigTwoLayersKey


ConfigKey: TypeAlias = ConfigKey_Resource | ConfigKey_AppConf | ConfigKey_Basic | ConfigKey_TwoLayers


@dataclass
class ConfigContent:
    key: ConfigKey
    value: str
    partition: str | None


@dataclass
class SecretContent:
    secret_name: str
    value: str | None
    partition: str | None


@dataclass
class Content_Kubernetes:
    value: str


@dataclass
class Content_Config:
    value: ConfigContent


@dataclass
class Content_Secret:
    value: SecretContent


Content: TypeAlias = Content_Kubernetes | Content_Config | Content_Secret


class OnExisting(Enum):
    """Policy for a member that exists and belongs to no set.

    - `REFUSE`: the entry fails.
    - `ADOPT`: the set takes it over.
    - `CREATE_ONLY`: the set creates the member if it is absent, and never changes it afterwards, whoever created it.
    """

    REFUSE = 0
    ADOPT = 1
    CREATE_ONLY = 2


class OnConflict(Enum):
    """Policy for a field that another field manager has, and that the entry sets to another value.

    - `FAIL`: the entry fails.
    - `FORCE`: the set takes the field over.
    """

    FAIL = 0
    FORCE = 1


class OnImmutable(Enum):
    """Policy for a change that the server refuses because a field is immutable.

    - `FAIL`: the entry fails.
    - `RECREATE`: the host deletes the member and creates it again.
    """

    FAIL = 0
    RECREATE = 1


class OnDelete(Enum):
    """Policy for a member when the owner is deleted, or a later set has no such entry.

    - `WITH_OWNER`: the member is deleted.
    - `RETAIN`: the member stays, and belongs to no set any more.
    - `ONLY_UNDER_WIPE_OUT`: the member is deleted with the policy `WIPE_OUT`, and stays otherwise.
    """

    WITH_OWNER = 0
    RETAIN = 1
    ONLY_UNDER_WIPE_OUT = 2


@dataclass
class DesiredEntry:
    name: str
    content: Content
    depends_on: list[str]
    ready_when: Readiness | None
    failed_when: str | None
    timeout: int | None
    on_existing: OnExisting | None
    on_conflict: OnConflict | None
    on_immutable: OnImmutable | None
    ignored_paths: list[str]
    on_delete: OnDelete | None


class TerminationPolicy(Enum):
    """Policy for the members when the owner is deleted.

    - `DO_NOT_TERMINATE`: owner and members stay.
    - `KEEP_VOLUMES`: all but volumes, volume claims and volume snapshots is deleted.
    - `DELETE`: all is deleted that `on_delete` does not keep.
    - `WIPE_OUT`: as `DELETE`, with what is kept under every other policy.
    """

    DO_NOT_TERMINATE = 0
    KEEP_VOLUMES = 1
    DELETE = 2
    WIPE_OUT = 3


@dataclass
class Termination_Policy:
    value: TerminationPolicy


@dataclass
class Termination_Path:
    value: str


Termination: TypeAlias = Termination_Policy | Termination_Path


@dataclass
class Orders:
    provision: list[list[str]]
    update: list[list[str]]
    terminate: list[list[str]]


@dataclass
class DesiredSet:
    entries: list[DesiredEntry]
    allow_empty: bool
    termination_policy: Termination | None
    orders: Orders | None
    pre_terminate: list[ResourceRequest]


@dataclass
class Plan:
    requests: Requests
    desired: DesiredSet | None


@dataclass
class HttpResponse:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


@dataclass
class RequestResult:
    request_name: str
    request_sink: RequestSink
    is_declarative: bool
    query_objects: list[str]
    created_timestamp: str
    finished_timestamp: str | None
    error: RequestError | None
    http_response: HttpResponse | None


@dataclass
class ResultEntry_One:
    value: RequestResult


@dataclass
class ResultEntry_Group:
    value: list[RequestResult]


ResultEntry: TypeAlias = ResultEntry_One | ResultEntry_Group


class WatchEvent(Enum):
    """Why an object is in the run. Several changes since the last run are one `MODIFIED`; `RESYNC` is a run without a change."""

    ADDED = 0
    MODIFIED = 1
    DELETED = 2
    RESYNC = 3


@dataclass
class WatchedObject:
    object: str
    event: WatchEvent


@dataclass
class ResourceObject_One:
    value: WatchedObject


@dataclass
class ResourceObject_Batch:
    value: list[WatchedObject]


ResourceObject: TypeAlias = ResourceObject_One | ResourceObject_Batch


@dataclass
class Signal:
    name: str
    data: str | None


@dataclass
class Cause_Entered:
    pass


@dataclass
class Cause_Retry:
    pass


@dataclass
class Cause_Again:
    pass


@dataclass
class Cause_Timer:
    pass


@dataclass
class Cause_Signal:
    value: Signal


@dataclass
class Cause_Changed:
    value: ObjectKey


@dataclass
class Cause_Recovered:
    pass


Cause: TypeAlias = (
    Cause_Entered | Cause_Retry | Cause_Again | Cause_Timer | Cause_Signal | Cause_Changed | Cause_Recovered
)


@dataclass
class Context:
    configurator: str
    phase: str
    node: str
    entry: int
    attempt: int
    cause: Cause
    now: str
    seed: int
    parameters: str
    run_id: str


@dataclass
class HandlerError:
    message: str
    fatal: bool
    retry_after: int | None
    code: str | None


@dataclass
class HandlerState:
    start_time: str | None
    end_time: str | None
    done: bool
    failed: bool
    fatal: bool
    error: HandlerError | None
    data: str | None
    request_results: list[tuple[str, ResultEntry]]


@dataclass
class HandlerInput:
    resource_object: ResourceObject
    request_results: list[tuple[str, ResultEntry]]
    pass_through_args: list[tuple[str, str]]
    last: HandlerState | None
    outputs: list[tuple[str, str]]
    plan: Plan | None
    context: Context


@dataclass
class Wake:
    after: int | None
    signals: list[str]
    objects: list[ObjectKey]


@dataclass
class Outcome_Done:
    pass


@dataclass
class Outcome_Again:
    value: int | None


@dataclass
class Outcome_Wait:
    value: Wake


@dataclass
class Outcome_Failed:
    value: HandlerError


@dataclass
class Outcome_Stop:
    pass


Outcome: TypeAlias = Outcome_Done | Outcome_Again | Outcome_Wait | Outcome_Failed | Outcome_Stop


@dataclass
class Progress:
    percent: int
    message: str


class EventType(Enum):
    """Whether a Kubernetes Event is about something ordinary, or a warning."""

    NORMAL = 0
    WARNING = 1


@dataclass
class StatusUpdate:
    of: ObjectRef | None
    status: str


@dataclass
class Event:
    of: ObjectRef | None
    event_type: EventType
    reason: str
    message: str


@dataclass
class HandlerOutput:
    requests: Requests
    pass_through_args: list[tuple[str, str]]
    outcome: Outcome
    next: str | None
    statuses: list[StatusUpdate]
    data: str | None
    events: list[Event]
    progress: Progress | None
    output: str | None
    details: str | None
    desired: DesiredSet | None
    remove_from_plan: list[str]
    reads: list[ResourceRequest]


class View(Enum):
    """What a person sees of a handler, in a machine."""

    NONE = 0
    CHECK_LIST = 1
    OBJECT_DETAIL = 2


class Accepts(Enum):
    """Whether a handler takes one object, a batch, or either."""

    ONE = 0
    BATCH = 1
    EITHER = 2


@dataclass
class HandlerDescription:
    name: str
    description: str
    view: View
    accepts: Accepts
    parameters_schema: str | None
    capabilities: str | None


@dataclass
class ModuleDescription:
    handlers: list[HandlerDescription]
