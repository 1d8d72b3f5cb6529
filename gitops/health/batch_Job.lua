-- A Job is healthy when it has succeeded. Argo CD's own check takes one that was resumed for finished.
-- Services of a run (symph.dev/until) are healthy while they run, and what the end of the run suspended stays so.
local hs = {status = "Progressing", message = "Running"}
local own = (obj.metadata ~= nil and obj.metadata.annotations) or {}
if own["symph.dev/until"] ~= nil then
  hs.status = "Healthy"
end
if obj.status ~= nil and obj.status.conditions ~= nil then
  for _, condition in ipairs(obj.status.conditions) do
    -- A condition that was true once stays in the list as false: only those that hold count.
    if condition.status == "True" then
      local said = condition.message
      if said == nil or said == "" then
        said = condition.reason or condition.type
      end
      if condition.type == "Failed" then
        return {status = "Degraded", message = said}
      elseif condition.type == "Complete" or condition.type == "SuccessCriteriaMet" then
        return {status = "Healthy", message = said}
      elseif condition.type == "Suspended" and own["symph.dev/ended"] ~= nil then
        hs = {status = "Healthy", message = "It ended with the run"}
      elseif condition.type == "Suspended" then
        hs = {status = "Suspended", message = said}
      end
    end
  end
end
return hs
