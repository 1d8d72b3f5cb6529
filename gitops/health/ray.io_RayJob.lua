-- RayJob of KubeRay, ray.io/v1: how the job ended, or else how far its cluster is.
local meanings = {
  SUCCEEDED = "Healthy",
  FAILED = "Degraded",
  STOPPED = "Degraded",
  Failed = "Degraded",
  ValidationFailed = "Degraded",
  Suspended = "Suspended",
  Suspending = "Suspended",
}
local phase = ""
if obj.status ~= nil then
  phase = obj.status.jobStatus or ""
end
if meanings[phase] == nil and obj.status ~= nil and obj.status.jobDeploymentStatus ~= nil then
  phase = obj.status.jobDeploymentStatus
end
local status = meanings[phase] or "Progressing"
if phase == "" then
  phase = "Not started"
end
local message = phase
if obj.status ~= nil and obj.status.message ~= nil and obj.status.message ~= "" then
  message = phase .. ": " .. obj.status.message
end
return {status = status, message = message}
