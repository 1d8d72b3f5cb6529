-- AppWrapper: v1beta2 (codeflare) says it in status.phase, v1beta1 (MCAD, what TorchX writes) in status.state.
local meanings = {
  Completed = "Healthy",
  Succeeded = "Healthy",
  Failed = "Degraded",
  Deleted = "Degraded",
  Suspended = "Suspended",
  Suspending = "Suspended",
}
local phase = ""
if obj.status ~= nil then
  phase = obj.status.phase or obj.status.state or ""
end
local status = meanings[phase] or "Progressing"
-- MCAD calls a run complete whose Jobs have ended, whichever way, and counts also failures that were made good.
local retried = false
if obj.spec ~= nil and obj.spec.resources ~= nil and obj.spec.resources.GenericItems ~= nil then
  for _, item in ipairs(obj.spec.resources.GenericItems) do
    local job = item.generictemplate ~= nil and item.generictemplate.spec or {}
    if (job.backoffLimit or 0) > 0 or (job.backoffLimitPerIndex or 0) > 0 then
      retried = true
    end
  end
end
if phase == "Completed" and (obj.status.failed or 0) > 0 and not retried then
  status = "Degraded"
end
if phase == "" then
  phase = "Not started"
end
local message = phase
if obj.status ~= nil and obj.status.message ~= nil and obj.status.message ~= "" then
  message = phase .. ": " .. obj.status.message
end
if obj.status ~= nil and obj.status.conditions ~= nil and phase == "Failed" then
  for _, condition in ipairs(obj.status.conditions) do
    if condition.type == "Unhealthy" and condition.status == "True" and (condition.message or "") ~= "" then
      message = phase .. ": " .. condition.message
    end
  end
end
return {status = status, message = message}
